"""Handshakes on a socket server whose sockets, poller and transports are fakes."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from itertools import pairwise
from pathlib import Path

import pytest

from odradek.broker.network.authentication import tls_handshakes
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from odradek.broker.network.authentication.tls_handshakes import HANDSHAKE_TIMEOUT_MS, TlsHandshakes
from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.security.tls.alerts import AlertKeepingContext
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test
from tests.support.certificates import Authority
from tests.support.garbage import no_collection
from tests.support.in_process.connections.listening import AcceptedSocket, Listening
from tests.support.in_process.connections.network import FakeOwner

DELAY_MS = 100
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01"


def counts_of_ssl() -> dict[str, AuthenticationCounts]:
    return {"SSL": AuthenticationCounts()}


class TlsClient(AcceptedSocket):
    def __init__(self, number: int, leading: bytes = HELLO) -> None:
        super().__init__(number)
        self.leading = leading

    def recv(self, size: int, flags: int) -> bytes:
        assert flags == socket.MSG_PEEK
        return self.leading[:size]


class Handshakes:
    """A server with one TLS listener."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        self.network = Listening(monkeypatch, listeners="SSL://h:1", security_inter_broker_protocol="SSL", **settings)
        self.begun: list[TlsClient] = []
        self.finish: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """How the handshakes end that have begun."""
        monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", self._shake)
        monkeypatch.setattr(asyncio.get_running_loop(), "remove_reader", lambda fd: self.network.readers.pop(fd, None))
        monkeypatch.setattr(type(self.network.server), "_contexts", self)

    def server_context(self, listener_name: str) -> str:
        return f"context of {listener_name}"

    async def _shake(self, make_protocol: object, accepted: TlsClient, *, ssl: str) -> None:
        assert ssl == "context of SSL"
        self.begun.append(accepted)
        await asyncio.shield(self.finish)

    async def start(self) -> None:
        await self.network.server.open()
        self.network.server.start_accepting()

    async def knock(self, number: int, leading: bytes = HELLO) -> TlsClient:
        client = TlsClient(number, leading)
        self.network.listening[0].queue.append((client, "192.0.2.1"))
        await self.network.turn()
        return client

    async def speak(self, *clients: TlsClient) -> None:
        """The first bytes of the clients come."""
        for client in clients:
            self.network.readers[client.number]()
        await asyncio.sleep(0)

    @property
    def counts(self) -> AuthenticationCounts:
        return self.network.server.authentication_counts["SSL"]

    @property
    def closed(self) -> dict[CloseReason, int]:
        return dict(self.network.server.closed_by_reason)


@async_test
async def test_one_handshake_begins_in_a_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    clients = [await server.knock(number) for number in range(20, 26)]
    assert server.begun == []
    await server.speak(*clients)
    counts = []
    for _ in range(12):
        counts.append(len(server.begun))
        await asyncio.sleep(0)
    assert counts[-1] == len(clients)
    assert all(after - before <= tls_handshakes.HANDSHAKES_PER_TURN for before, after in pairwise(counts))
    assert server.begun == clients


@async_test
async def test_a_silent_client_holds_no_other_client_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    silent = [await server.knock(number) for number in range(20, 30)]
    client = await server.knock(30)
    await server.speak(client)
    await server.network.turn()
    assert server.begun == [client]
    assert not any(each.is_closed for each in silent)


@async_test
async def test_one_more_handshake_than_the_limit_ends_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshakes, "HANDSHAKES_MAX", 3)
    server = Handshakes(monkeypatch)
    await server.start()
    silent = await server.knock(20)
    clients = [await server.knock(number) for number in range(21, 26)]
    for number, client in enumerate(clients, start=1):
        await server.speak(client)
        await server.network.turn()
        assert server.begun[-1] == client
        assert [each.is_closed for each in clients[:number]] == [True] * (number - 3) + [False] * min(3, number)
    assert server.closed == {CloseReason.HANDSHAKE_FAILED: 2}
    assert not silent.is_closed, "it costs a socket only"
    assert server.counts == AuthenticationCounts(), "no client was refused"
    server.finish.set_result(None)
    await server.network.turn()
    assert server.counts == AuthenticationCounts(successful_authentication=3, successful_authentication_no_reauth=3)
    more = [await server.knock(number) for number in range(30, 33)]
    await server.speak(*more)
    await server.network.turn()
    assert server.closed == {CloseReason.HANDSHAKE_FAILED: 2}, "those that are over do not count"


@async_test
async def test_a_handshake_has_a_time_limit(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    silent, slow = await server.knock(20), await server.knock(21)
    await server.speak(slow)
    await server.network.turn()
    assert server.begun == [slow]
    await server.network.advance(HANDSHAKE_TIMEOUT_MS - 1)
    assert not silent.is_closed
    await server.network.advance(1)
    assert silent.is_closed
    assert slow.is_closed
    assert server.closed == {CloseReason.HANDSHAKE_FAILED: 2}
    assert len(server.network.server.connections) == 0
    assert [record.message for record in caplog.records if "Failed authentication" in record.message] == [
        "Failed authentication with /192.0.2.1 (SSL handshake failed: it takes longer than 60000 ms)"
    ]


@async_test
async def test_a_shorter_limit_for_idle_connections_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch, connections_max_idle_ms="5000")
    await server.start()
    silent = await server.knock(20)
    await server.network.advance(5000)
    assert silent.is_closed


@async_test
@pytest.mark.parametrize(
    ("error", "leading", "reason", "line", "counted"),
    [
        (
            ssl.SSLError(1, "x"),
            b"GET / HT",
            CloseReason.HANDSHAKE_FAILED,
            "the client does not speak TLS; it looks like an HTTP request",
            0,
        ),
        (
            ssl.SSLError(1, "x"),
            b"\0\0\0\x14\0\x12\0\3",
            CloseReason.HANDSHAKE_FAILED,
            "the client does not speak TLS)",
            0,
        ),
        (ssl.SSLError(1, "[SSL: NO_SHARED_CIPHER]"), HELLO, CloseReason.HANDSHAKE_FAILED, "no shared cipher", 1),
        (ConnectionResetError("reset"), HELLO, CloseReason.CONNECTION_FAILED, None, 0),
    ],
)
async def test_failed_handshakes(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: OSError,
    leading: bytes,
    reason: CloseReason,
    line: str | None,
    counted: int,
) -> None:
    """Kafka counts a failed handshake as a failed authentication, but not bytes that are no TLS."""
    server = Handshakes(monkeypatch)
    await server.start()
    client = await server.knock(20, leading)
    await server.speak(client)
    await server.network.turn()
    server.finish.set_exception(error)
    await server.network.turn()
    assert client.is_closed
    assert server.closed == {reason: 1}
    assert (line or "") in caplog.text
    assert ("Failed authentication" in caplog.text) == (line is not None)
    assert server.counts == AuthenticationCounts(failed_authentication=counted)


@async_test
async def test_each_reason_of_a_refusal_is_logged_within_the_same_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    for number, reason in enumerate(("A", "B", "A"), start=20):
        server.finish = asyncio.get_running_loop().create_future()
        await server.speak(await server.knock(number))
        await server.network.turn()
        server.finish.set_exception(ssl.SSLError(1, reason))
        await server.network.turn()
    assert [text for text in caplog.messages if "Failed authentication" in text] == [
        f"Failed authentication with /192.0.2.1 (SSL handshake failed: {reason})" for reason in ("a", "b")
    ]


@async_test
async def test_a_client_that_closes_before_it_has_sent_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    client = await server.knock(20, b"")
    await server.speak(client)
    await server.network.turn()
    assert client.is_closed
    assert server.begun == []
    assert server.closed == {CloseReason.CONNECTION_FAILED: 1}


@async_test
async def test_a_stop_does_not_wait_for_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch)
    await server.start()
    silent, slow = await server.knock(20), await server.knock(21)
    await server.speak(slow)
    await server.network.turn()
    await server.network.server.close()
    assert silent.is_closed
    assert slow.is_closed
    assert server.closed == {CloseReason.SHUTDOWN: 2}


@async_test
async def test_a_handshake_ends_when_its_connection_is_closed_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Handshakes(monkeypatch, max_connections="1", max_connections_per_ip="5")
    await server.start()
    first = await server.knock(20)
    (connection,) = server.network.server.connections
    connection.abort(CloseReason.TOO_MANY_CONNECTIONS)
    await server.network.turn()
    assert first.is_closed
    assert server.closed == {CloseReason.TOO_MANY_CONNECTIONS: 1}


@async_test
async def test_a_failed_handshake_is_freed_without_a_collection(tmp_path: Path) -> None:
    """Its buffers have 256 KB: clients could fill the memory before the next collection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority().issue("broker").write_pem(tmp_path / "broker.pem"))
    handshakes = TlsHandshakes(SystemTimer(ManualClock()), lambda listener: context, counts_of_ssl(), DELAY_MS)
    accepted, client = socket.socketpair()
    accepted.setblocking(False)
    client.sendall(b"\x16\x03\x01\x00\x05hello")
    connection = Connection(FakeOwner(), "SSL", 1_000, SecurityProtocol.SSL)
    with client, no_collection():
        await asyncio.create_task(handshakes.accept(accepted, connection, 1_000))
        assert connection._owner.closed[0][0] is CloseReason.HANDSHAKE_FAILED  # type: ignore[attr-defined]
        for _ in range(3):
            await asyncio.sleep(0)
        assert not any(type(one) is SSLProtocol for one in gc.get_objects())


class Refusing:
    """Handshakes that refuse each client certificate but those of one authority; clients are in threads."""

    def __init__(self, directory: Path) -> None:
        trusted, foreign = Authority(), Authority("Foreign CA")
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        context = AlertKeepingContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(trusted.issue("broker").write_pem(directory / "broker.pem"))
        context.load_verify_locations(cadata=trusted.pem)
        context.verify_mode = ssl.CERT_REQUIRED
        self.handshakes = TlsHandshakes(self.timer, lambda listener: context, counts_of_ssl(), DELAY_MS)
        self._client_context = ssl.create_default_context(cadata=trusted.pem)
        self._client_context.load_cert_chain(foreign.issue("client", hosts=()).write_pem(directory / "client.pem"))

    async def connect(self, *, sends: bytes) -> tuple[ssl.SSLSocket, Connection]:
        """A client for whom the handshake is over, and its connection."""
        accepted, client = socket.socketpair()
        accepted.setblocking(False)
        client.settimeout(10)

        def speak() -> ssl.SSLSocket:
            wrapped = self._client_context.wrap_socket(client, server_hostname="localhost")
            wrapped.sendall(sends)
            return wrapped

        speaking = asyncio.get_running_loop().run_in_executor(None, speak)
        connection = Connection(FakeOwner(), "SSL", 1_000, SecurityProtocol.SSL)
        await asyncio.create_task(self.handshakes.accept(accepted, connection, 1_000))
        return await speaking, connection


@async_test
async def test_a_client_that_is_refused_gets_the_alert_before_its_connection_is_closed(tmp_path: Path) -> None:
    server = Refusing(tmp_path)
    client, connection = await server.connect(sends=b"a request")
    with client:
        assert connection._owner.closed[0][0] is CloseReason.HANDSHAKE_FAILED  # type: ignore[attr-defined]
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            client.recv(1)
        client.settimeout(0)
        server.clock.advance(DELAY_MS - 1)
        server.timer.advance()
        assert is_open(client)
        server.clock.advance(1)
        server.timer.advance()
        assert not is_open(client)


@async_test
async def test_refused_clients_are_closed_at_the_limit_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "HANDSHAKES_MAX", 1)
    server = Refusing(tmp_path)
    first, _ = await server.connect(sends=b"")
    second, _ = await server.connect(sends=b"")
    with first, second:
        assert not is_open(first)
        assert is_open(second)
        server.handshakes.close()
        assert not is_open(second)


def is_open(client: ssl.SSLSocket) -> bool:
    """Whether the other end of a socket has not closed it."""
    client.settimeout(0)
    try:
        socket.socket.send(client, b"x")
    except OSError:
        return False
    return True
