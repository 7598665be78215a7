from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from odradek.broker.inter_broker.broker_connection import (
    RECONNECT_BACKOFF_MS,
    BrokerConnection,
    LinkSettings,
    VersionMismatch,
)
from odradek.broker.network.frames.answer_receiver import AnswerReceiver
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_request, encode_response_parts
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test

END_POINT = EndPoint("broker.example", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
SETUP_TIMEOUT_MS = 10_000


class Peer:
    """The broker at the other end; as a transport it receives the written bytes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.requests: list[tuple[RequestHeader, Request]] = []
        self.answer: Callable[[RequestHeader, Request], Response | bytes | None] = lambda header, request: None
        self.receiver: AnswerReceiver | None = None
        self.attempts = 0
        self.refusals = 0
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.hangups = 0
        settings = LinkSettings(
            connect=self.connect,
            timer=self.timer,
            max_frame_bytes=1_000_000,
            connection_setup_timeout_ms=SETUP_TIMEOUT_MS,
            connection_setup_timeout_max_ms=3 * SETUP_TIMEOUT_MS,
            buffers=FrameBuffers(),
            reauthenticate=self.reauthenticate,
        )
        self.reauthentications = 0
        self.link = BrokerConnection(END_POINT, client_id="broker-1", settings=settings)

    async def connect(self, end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
        assert end_point == END_POINT
        self.attempts += 1
        await self.reachable.wait()
        if self.refusals:
            self.refusals -= 1
            raise ConnectionRefusedError("nobody listens")
        self.receiver = make_receiver()
        self.receiver.connection_made(cast("asyncio.Transport", self))
        return self.receiver

    async def reauthenticate(self, end_point: EndPoint, receiver: AnswerReceiver) -> None:
        """Lasts as long as `reachable` is not set. The new session has 100 ms."""
        assert (end_point, receiver) == (END_POINT, self.receiver)
        self.reauthentications += 1
        await self.reachable.wait()
        if self.refusals:
            self.refusals -= 1
            raise ConnectionError("the password was changed")
        receiver.usable_until_ms = self.clock.monotonic_ms() + 100

    def write(self, frame: bytes) -> None:
        header, request = decode_request(frame[4:])
        self.requests.append((header, request))
        answer = self.answer(header, request)
        if isinstance(answer, Response):
            version = 0 if getattr(answer, "error_code", 0) == 35 else header.api_version
            parts = encode_response_parts(header.api_key, version, header.correlation_id, answer)
            answer = b"".join(cast("list[bytes]", parts))
        if answer is not None:
            self.send(answer)

    def send(self, answer: bytes) -> None:
        data = len(answer).to_bytes(4, "big") + answer
        assert self.receiver is not None
        self.receiver.get_buffer(-1)[: len(data)] = data
        self.receiver.buffer_updated(len(data))

    def abort(self) -> None:
        self.hangups += 1

    def ask(self, version: int | None = 0, timeout_ms: int = 1_000) -> asyncio.Task[AllocateProducerIdsResponse]:
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=7)
        return asyncio.ensure_future(
            self.link.exchange(request, AllocateProducerIdsResponse, version=version, timeout_ms=timeout_ms)
        )

    async def advance(self, ms: int) -> None:
        await turns()
        self.clock.advance(ms)
        self.timer.advance()
        await turns()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def block(start: int) -> Callable[[RequestHeader, Request], Response]:
    return lambda header, request: AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1000)


def versions(*served: tuple[int, int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in served]
    )


@async_test
async def test_a_request_goes_out_unannounced_in_the_version_it_names() -> None:
    peer = Peer()
    peer.answer = block(5_000)
    response = await peer.ask(version=0)
    assert response.producer_id_start == 5_000
    ((header, request),) = peer.requests
    assert (header.api_key, header.api_version, header.client_id) == (ApiKey.ALLOCATE_PRODUCER_IDS, 0, "broker-1")
    assert request == AllocateProducerIdsRequest(broker_id=1, broker_epoch=7)


@async_test
async def test_one_connection_serves_many_requests_one_at_a_time_and_in_order() -> None:
    peer = Peer()
    first, second = peer.ask(), peer.ask()
    await turns()
    assert [header.correlation_id for header, _ in peer.requests] == [1]
    peer.send(b"\0\0\0\x01" + bytes(30))
    await first
    await turns()
    assert [header.correlation_id for header, _ in peer.requests] == [1, 2]
    peer.send(b"\0\0\0\x02" + bytes(30))
    await second
    assert peer.attempts == 1


@async_test
async def test_versions_are_agreed_upon_once_for_a_connection_if_the_caller_names_none() -> None:
    peer = Peer()

    def answer(header: RequestHeader, request: Request) -> Response:
        if header.api_key == ApiKey.API_VERSIONS:
            return versions((ApiKey.ALLOCATE_PRODUCER_IDS, 0, 3), (999, 0, 1))
        return AllocateProducerIdsResponse(producer_id_start=1)

    peer.answer = answer
    await peer.ask(version=None)
    await peer.ask(version=None)
    assert [(h.api_key, h.api_version) for h, _ in peer.requests] == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0),
    ]
    assert peer.receiver is not None
    peer.receiver.connection_lost(None)
    await peer.ask(version=None)
    assert [h.api_key for h, _ in peer.requests[3:]] == [ApiKey.API_VERSIONS, ApiKey.ALLOCATE_PRODUCER_IDS]


@async_test
async def test_a_broker_with_an_older_api_versions_gets_that_version() -> None:
    peer = Peer()

    def answer(header: RequestHeader, request: Request) -> Response:
        if header.api_key != ApiKey.API_VERSIONS:
            return AllocateProducerIdsResponse()
        if header.api_version > 2:
            return ApiVersionsResponse(
                error_code=35, api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)]
            )
        return versions((ApiKey.API_VERSIONS, 0, 2), (ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0))

    peer.answer = answer
    await peer.ask(version=None)
    assert [(h.api_key, h.api_version) for h, _ in peer.requests] == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.API_VERSIONS, 2),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0),
    ]


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNSUPPORTED_VERSION])
@async_test
async def test_versions_that_are_not_told_close_the_connection(error: ErrorCode) -> None:
    """A coordinator would else count as too old to verify, and records would be appended without that."""
    peer = Peer()
    peer.answer = lambda header, request: ApiVersionsResponse(error_code=error)
    with pytest.raises(ConnectionAbortedError, match=f"answered ApiVersions with error {error.value}"):
        await peer.ask(version=None)
    assert peer.hangups == 1
    assert {header.api_key for header, _ in peer.requests} == {ApiKey.API_VERSIONS}


@pytest.mark.parametrize("served", [[], [(ApiKey.ALLOCATE_PRODUCER_IDS, 1, 3)]])
@async_test
async def test_no_version_in_common_is_an_error_and_no_request(served: list[tuple[int, int, int]]) -> None:
    peer = Peer()
    peer.answer = lambda header, request: versions(*served)
    with pytest.raises(VersionMismatch):
        await peer.ask(version=None)
    assert len(peer.requests) == 1


@async_test
async def test_a_request_that_cannot_be_said_in_the_version_in_common_is_not_sent() -> None:
    peer = Peer()
    peer.answer = lambda header, request: versions((ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3))
    request = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(transactional_id="t")])
    for _ in range(2):
        with pytest.raises(VersionMismatch):
            await peer.link.exchange(request, AddPartitionsToTxnResponse, version=None, timeout_ms=1_000)
    # The connection is as good as it was.
    assert len(peer.requests) == 1
    assert peer.hangups == 0


@async_test
async def test_an_answer_that_does_not_come_is_a_timeout_and_the_connection_is_not_used_again() -> None:
    peer = Peer()
    asked = peer.ask(timeout_ms=300)
    await peer.advance(301)
    with pytest.raises(TimeoutError, match=r"AllocateProducerIdsRequest to PLAINTEXT://broker\.example:9092"):
        await asked
    assert peer.hangups == 1
    peer.answer = block(1)
    await peer.ask()
    assert peer.attempts == 2


@async_test
async def test_a_caller_that_gives_up_leaves_no_answer_behind_for_the_next_one() -> None:
    peer = Peer()
    asked = peer.ask()
    await turns()
    asked.cancel()
    await turns()
    assert asked.cancelled()
    assert peer.hangups == 1
    peer.answer = block(1)
    await peer.ask()
    assert peer.attempts == 2


@pytest.mark.parametrize("answer", [b"\0\0\0\x63" + bytes(30), b"\0\0\0\x01\0", b"\0"])
@async_test
async def test_an_invalid_answer_ends_the_connection(answer: bytes) -> None:
    peer = Peer()
    peer.answer = lambda header, request: answer
    with pytest.raises(ConnectionAbortedError, match="sent an invalid answer"):
        await peer.ask()
    assert peer.hangups == 1


@async_test
async def test_after_a_refused_connection_the_next_attempt_waits() -> None:
    peer = Peer()
    peer.refusals = 1
    with pytest.raises(ConnectionRefusedError):
        await peer.ask()
    peer.answer = block(1)
    asked = peer.ask()
    await peer.advance(RECONNECT_BACKOFF_MS - 1)
    assert peer.attempts == 1
    await peer.advance(1)
    await asked
    assert peer.attempts == 2


@async_test
async def test_an_attempt_to_connect_has_twice_as_long_after_each_failure_up_to_a_bound() -> None:
    peer = Peer()
    peer.reachable.clear()
    for timeout_ms in (SETUP_TIMEOUT_MS, 2 * SETUP_TIMEOUT_MS, 3 * SETUP_TIMEOUT_MS, 3 * SETUP_TIMEOUT_MS):
        asked = peer.ask(timeout_ms=100_000)
        await peer.advance(RECONNECT_BACKOFF_MS)
        await peer.advance(timeout_ms - RECONNECT_BACKOFF_MS - 1)
        assert not asked.done()
        await peer.advance(2)
        with pytest.raises(TimeoutError, match=f"Connecting to .* took more than {timeout_ms} ms"):
            await asked
    assert peer.attempts == 4


@async_test
async def test_a_request_that_is_out_of_time_does_not_go_on_connecting() -> None:
    peer = Peer()
    peer.reachable.clear()
    asked = peer.ask(timeout_ms=100)
    await peer.advance(101)
    with pytest.raises(TimeoutError, match="AllocateProducerIdsRequest"):
        await asked
    peer.reachable.set()
    await turns()
    assert peer.receiver is None


@async_test
async def test_closing_fails_requests_that_wait_for_an_answer_a_connection_or_their_turn() -> None:
    for reachable in (True, False):
        peer = Peer()
        if not reachable:
            peer.reachable.clear()
        first, second = peer.ask(), peer.ask()
        await turns()
        peer.link.close()
        for asked in (first, second):
            with pytest.raises(ConnectionAbortedError, match="was closed"):
                await asked
        peer.link.close()
        with pytest.raises(ConnectionAbortedError):
            await peer.ask()
        assert peer.attempts == 1


@async_test
async def test_a_connection_that_opens_as_the_link_is_closed_is_hung_up() -> None:
    peer = Peer()
    peer.reachable.clear()
    asked = peer.ask()
    await turns()
    peer.reachable.set()
    await asyncio.sleep(0)
    peer.link.close()
    with pytest.raises(ConnectionAbortedError):
        await asked
    await turns()
    assert peer.receiver is None or not peer.receiver.is_open


@async_test
async def test_records_are_views_of_the_frame() -> None:
    peer = Peer()
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"records")])]
    )
    peer.answer = lambda header, request: response
    answer = await peer.link.exchange(FetchRequest(), FetchResponse, version=12, timeout_ms=1_000)
    records = answer.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records == b"records"


async def authenticated() -> Peer:
    """A link with a session of 100 ms."""
    peer = Peer()
    peer.answer = block(5_000)
    await peer.ask()
    assert peer.receiver is not None
    peer.receiver.usable_until_ms = peer.clock.monotonic_ms() + 100
    return peer


@async_test
async def test_a_link_authenticates_again_on_its_connection_before_its_session_ends() -> None:
    peer = await authenticated()
    await peer.advance(99)
    await peer.ask()
    assert peer.reauthentications == 0
    for again in (1, 2):
        await peer.advance(100)
        await peer.ask()
        await peer.ask()
        assert peer.reauthentications == again
    assert peer.attempts == 1


@async_test
async def test_a_link_that_is_refused_opens_another_connection() -> None:
    peer = await authenticated()
    await peer.advance(100)
    peer.refusals = 1
    with pytest.raises(ConnectionError, match="the password was changed"):
        await peer.ask()
    assert peer.hangups == 1
    await peer.ask()
    assert (peer.attempts, peer.reauthentications) == (2, 1)


@async_test
async def test_an_authentication_that_lasts_too_long_ends_with_the_time_of_the_request() -> None:
    peer = await authenticated()
    await peer.advance(100)
    peer.reachable.clear()
    asked = peer.ask(timeout_ms=50)
    await peer.advance(50)
    with pytest.raises(TimeoutError):
        await asked
    assert peer.hangups == 1
