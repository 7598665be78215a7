"""The other end is a thread that plays the broker; it answers what the test says, one entry a request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.command import socket_link
from odradek.broker.tools.command.addresses import Address
from odradek.broker.tools.command.client_config import client_config
from odradek.broker.tools.command.socket_link import SocketLink
from odradek.broker.tools.command.socket_loop import gather, run
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import frame_prefix
from odradek.protocol.headers import decode_request, encode_response_parts
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.timer.clock import ManualClock, SystemClock

CLOCK = SystemClock()
LIMIT_MS = 20_000
VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=4),
        ApiVersion(api_key=ApiKey.LIST_GROUPS, min_version=0, max_version=3),
    ]
)
GROUPS = ListGroupsResponse(groups=[ListedGroup(group_id="g")])
Reply = Callable[[bytes], bytes | None]
"""The frame of a request -> bytes to send; None closes the connection."""


def frame(data: bytes) -> bytes:
    return bytes(frame_prefix(len(data))) + data


def answer(response: ApiVersionsResponse | ListGroupsResponse, version: int | None = None, wrong: int = 0) -> Reply:
    def reply(request: bytes) -> bytes:
        header, _ = decode_request(memoryview(request))
        spoken = header.api_version if version is None else version
        data = b"".join(encode_response_parts(header.api_key, spoken, header.correlation_id + wrong, response))
        return frame(bytes(data))

    return reply


class Peer:
    """A broker that answers with the next of its replies."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.has_closed = threading.Event()
        """The connection of the last request."""
        self._connection: socket.socket | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listening.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)

    def close_connection(self) -> None:
        """Close the present connection, which is idle."""
        assert self._connection is not None
        self._connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self._connection = connection
            self.has_closed.clear()
            with connection, connection.makefile("rb") as reader:
                while size := reader.read(4):
                    request = reader.read(int.from_bytes(size, "big"))
                    self.requests.append(request)
                    sent = self.replies.pop(0)(request) if self.replies else None
                    if sent is None:
                        break
                    connection.sendall(sent)
            self.has_closed.set()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def link(peer: Peer) -> Iterator[SocketLink]:
    link = SocketLink(peer.address, client_config(None, {}), CLOCK)
    yield link
    link.close()


def ask(link: SocketLink, request: Request | None = None, timeout_ms: int = LIMIT_MS) -> ListGroupsResponse:
    return run(link.exchange(request or ListGroupsRequest(), ListGroupsResponse, timeout_ms), CLOCK)


def test_the_highest_common_version_is_asked_for_once(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), answer(GROUPS), answer(GROUPS)]
    assert ask(link) == ask(link) == GROUPS
    headers = [decode_request(memoryview(request))[0] for request in peer.requests]
    assert [(header.api_key, header.api_version) for header in headers] == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.LIST_GROUPS, 3),
        (ApiKey.LIST_GROUPS, 3),
    ]
    assert {header.client_id for header in headers} == {"odradek-admin"}
    assert peer.connections == 1


def test_requests_at_the_same_time_take_turns(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), answer(GROUPS), answer(GROUPS)]

    async def both() -> list[ListGroupsResponse]:
        return await gather([link.exchange(ListGroupsRequest(), ListGroupsResponse, LIMIT_MS) for _ in range(2)])

    assert run(both(), CLOCK) == [GROUPS, GROUPS]


def test_a_connection_that_the_broker_has_closed_is_opened_again(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), answer(GROUPS)]
    assert ask(link) == GROUPS
    with pytest.raises(ConnectionError):
        ask(link)  # the broker has no reply, and closes
    peer.replies = [answer(VERSIONS), answer(GROUPS)]
    assert ask(link) == GROUPS
    peer.close_connection()
    assert peer.has_closed.wait(20)
    peer.replies = [answer(VERSIONS), answer(GROUPS)]
    assert ask(link) == GROUPS
    assert peer.connections == 3


def test_a_request_without_an_answer_is_followed_by_the_next_one(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), lambda request: b"", answer(GROUPS)]
    run(link.send(ListGroupsRequest(), LIMIT_MS), CLOCK)
    assert ask(link) == GROUPS
    assert [decode_request(memoryview(request))[0].api_version for request in peer.requests] == [4, 3, 3]


def test_a_version_that_is_asked_for(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), answer(GROUPS)]
    assert run(link.exchange(ListGroupsRequest(), ListGroupsResponse, LIMIT_MS, version=1), CLOCK) == GROUPS
    assert decode_request(memoryview(peer.requests[1]))[0].api_version == 1


def test_attempts_to_connect_get_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    config = client_config(None, {"socket.connection.setup.timeout.ms": "10"})._replace(
        connection_setup_timeout_max_ms=30
    )
    link = SocketLink(Address("127.0.0.1", 1), config, ManualClock(0))
    limits = []

    async def refused(until_ms: int) -> socket.socket:
        limits.append(until_ms)
        raise ConnectionRefusedError

    monkeypatch.setattr(link, "_open", refused)
    for _ in range(4):
        with pytest.raises(ConnectionRefusedError):
            ask(link)
    assert limits == [10, 20, 30, 30]


def test_an_older_broker_is_asked_in_a_version_that_it_has(peer: Peer, link: SocketLink) -> None:
    old = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)],
    )
    peer.replies = [answer(old, version=0), answer(VERSIONS), answer(GROUPS)]
    assert ask(link) == GROUPS
    assert decode_request(memoryview(peer.requests[1]))[0].api_version == 2


def test_a_request_without_a_common_version_leaves_the_connection_open(peer: Peer, link: SocketLink) -> None:
    without = ApiVersionsResponse(api_keys=VERSIONS.api_keys[:1])
    peer.replies = [answer(without)]
    for _ in range(2):
        with pytest.raises(VersionMismatch, match="No common version of ListGroups"):
            ask(link)
    assert peer.connections == 1
    peer.replies = [answer(VERSIONS)]
    link.close()
    with pytest.raises(VersionMismatch, match="can encode this request"):
        ask(link, ListGroupsRequest(states_filter=["Stable"]))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (lambda request: None, "closed the connection"),
        (answer(GROUPS, wrong=1), "sent an invalid answer"),
        (lambda request: frame(b"junk"), "sent an invalid answer"),
        (lambda request: b"\xff\xff\xff\xff", "sent an answer of -1 bytes"),
    ],
)
def test_after_a_broken_answer_the_next_request_connects_again(
    reply: Reply, error: str, peer: Peer, link: SocketLink
) -> None:
    peer.replies = [answer(VERSIONS), reply, answer(VERSIONS), answer(GROUPS)]
    with pytest.raises(ConnectionError, match=error):
        ask(link)
    assert ask(link) == GROUPS
    assert peer.connections == 2


def test_a_refused_api_versions_is_an_error(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(ApiVersionsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))]
    with pytest.raises(ConnectionError, match="answered ApiVersions with error -1"):
        ask(link)


def test_a_broker_that_is_silent_is_given_up(peer: Peer, link: SocketLink) -> None:
    peer.replies = [answer(VERSIONS), lambda request: b""]
    with pytest.raises(TimeoutError, match="did not answer ListGroupsRequest in 50 ms"):
        ask(link, timeout_ms=50)


def test_an_answer_that_is_announced_takes_no_memory_before_it_comes(
    peer: Peer, link: SocketLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_link, "CHUNK_BYTES", 7)
    peer.replies = [answer(VERSIONS), answer(GROUPS)]
    assert ask(link) == GROUPS
    peer.replies = [lambda request: b"\x7f\xff\xff\xff"]
    with pytest.raises(TimeoutError):
        ask(link, timeout_ms=50)


def test_a_large_request_is_sent_whole(peer: Peer, link: SocketLink) -> None:
    with_states = ApiVersionsResponse(
        api_keys=[*VERSIONS.api_keys[:1], ApiVersion(api_key=ApiKey.LIST_GROUPS, min_version=0, max_version=5)]
    )
    peer.replies = [answer(with_states), answer(GROUPS)]
    states = ["x" * 30_000] * 400
    assert ask(link, ListGroupsRequest(states_filter=states)) == GROUPS
    assert len(peer.requests[1]) > 12_000_000


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", unused.getsockname()[1])
        with pytest.raises(ConnectionRefusedError, match=f"127.0.0.1:{address.port}"):
            ask(SocketLink(address, client_config(None, {}), CLOCK))
