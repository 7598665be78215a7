from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network import socket_server
from odradek.broker.network.close_reason import CloseReason
from odradek.broker.network.socket_server import ACCEPTS_PER_TURN, RETRY_ACCEPT_MS, SocketServer
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test
from tests.support.in_process.network import FakeTransport, Wire

HOST = "192.0.2.1"
FIRST_FD = 20


class _AcceptedSocket:
    """A client whose connection is accepted."""

    def __init__(self, number: int = FIRST_FD, *, fails: bool = False) -> None:
        self.number = number
        self.options: dict[tuple[int, int], int] = {}
        self.is_blocking = True
        self.is_closed = False
        self._fails = fails

    def fileno(self) -> int:
        return self.number

    def setblocking(self, is_blocking: bool) -> None:
        self.is_blocking = is_blocking

    def setsockopt(self, level: int, name: int, value: int) -> None:
        if self._fails:
            raise OSError(errno.EINVAL, "Invalid argument")
        self.options[level, name] = value

    def close(self) -> None:
        self.is_closed = True


class _ListeningSocket:
    """Clients wait in `queue`; an OSError in it is raised by `accept`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.queue: deque[tuple[_AcceptedSocket, str] | OSError] = deque()

    def fileno(self) -> int:
        return self.number

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 40_000 + self.number

    def accept(self) -> tuple[_AcceptedSocket, tuple[str, int]]:
        if not self.queue:
            raise BlockingIOError
        first = self.queue.popleft()
        if isinstance(first, OSError):
            raise first
        return first[0], (first[1], 50_000)

    def close(self) -> None:
        self.number = -1


class _Transport(FakeTransport):
    """Calls connection_lost in the next turn of the loop, as real transports do."""

    def abort(self) -> None:
        super().abort()
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)  # type: ignore[attr-defined]


class _Network:
    """A server whose listening sockets, poller and transports are fakes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        self.config = config = BrokerConfig({key.replace("_", "."): value for key, value in settings.items()})
        self.clock = ManualClock(1_000_000)
        self.timer = SystemTimer(self.clock)
        self.server = SocketServer(config, self.clock, self.timer, InlineIoPool(), lambda *request: None)
        self.server.fd_limit = 1000
        self.listening: list[_ListeningSocket] = []
        self.refuse_from: int | None = None
        self.readers: dict[int, Callable[[], None]] = {}
        self.transports: list[_Transport] = []
        self.gate: asyncio.Event | None = None
        """Keeps clients in their handshake until it is set."""
        monkeypatch.setattr(socket_server, "open_listening_socket", self._open)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "add_reader", self._add_reader)
        monkeypatch.setattr(loop, "remove_reader", self._remove_reader)
        monkeypatch.setattr(loop, "connect_accepted_socket", self._connect)

    def _open(self, end_point: object, *, receive_buffer_bytes: int, backlog: int) -> _ListeningSocket:
        if len(self.listening) == self.refuse_from:
            raise StartupError("taken")
        self.listening.append(_ListeningSocket(10 + len(self.listening)))
        return self.listening[-1]

    def _add_reader(self, number: int, callback: Callable[[], None]) -> None:
        assert number not in self.readers
        self.readers[number] = callback

    def _remove_reader(self, number: int) -> None:
        del self.readers[number]

    async def _connect(self, make_protocol: Callable[[], asyncio.Protocol], accepted: _AcceptedSocket) -> None:
        if self.gate is not None:
            await self.gate.wait()
        transport = _Transport(Wire())
        self.transports.append(transport)
        transport.protocol = protocol = make_protocol()
        protocol.connection_made(transport)  # type: ignore[arg-type]

    # What clients do

    def knock(
        self, host: str = HOST, *, listener: int = 0, number: int = FIRST_FD, fails: bool = False
    ) -> _AcceptedSocket:
        accepted = _AcceptedSocket(number, fails=fails)
        self.listening[listener].queue.append((accepted, host))
        return accepted

    async def turn(self) -> None:
        """Wake the acceptors that have clients waiting, as the poller does, and run what they start to its end."""
        for listening in self.listening:
            if listening.queue and listening.number in self.readers:
                self.readers[listening.number]()
        for _ in range(5):
            await asyncio.sleep(0)

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()
        await self.turn()


def started(monkeypatch: pytest.MonkeyPatch, **settings: str) -> _Network:
    network = _Network(monkeypatch, **settings)
    network.server.open()
    network.server.start_accepting()
    return network


TWO_LISTENERS = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093",
    "listener_security_protocol_map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter_broker_listener_name": "BROKERS",
}


# -- opening


@async_test
async def test_open_returns_the_ports_and_accepts_no_client_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _Network(monkeypatch, **TWO_LISTENERS)
    end_points = network.server.open()
    assert [(point.listener_name, point.port) for point in end_points] == [("CLIENTS", 40_010), ("BROKERS", 40_011)]
    assert network.server.end_points == end_points
    assert network.readers == {}
    network.server.start_accepting()
    assert set(network.readers) == {10, 11}


@async_test
async def test_open_opens_all_listeners_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _Network(monkeypatch, **TWO_LISTENERS)
    network.refuse_from = 1
    with pytest.raises(StartupError):
        network.server.open()
    assert [listening.fileno() for listening in network.listening] == [-1]
    assert network.server.end_points == ()
    network.server.start_accepting()
    assert network.readers == {}


# -- accepting


@async_test
async def test_accepted_client_becomes_a_connection_of_its_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, **TWO_LISTENERS, socket_send_buffer_bytes="5000")
    accepted = network.knock(listener=1)
    await network.turn()
    (connection,) = network.server.connections
    assert (connection.listener_name, connection.client_host) == ("BROKERS", HOST)
    assert not accepted.is_blocking
    names = socket_server.socket
    assert accepted.options == {
        (names.IPPROTO_TCP, names.TCP_NODELAY): 1,
        (names.SOL_SOCKET, names.SO_KEEPALIVE): 1,
        (names.SOL_SOCKET, names.SO_SNDBUF): 5000,
    }


@async_test
async def test_send_buffer_can_be_left_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, socket_send_buffer_bytes="-1")
    accepted = network.knock()
    await network.turn()
    assert (socket_server.socket.SOL_SOCKET, socket_server.socket.SO_SNDBUF) not in accepted.options


@async_test
async def test_flood_of_clients_does_not_keep_the_loop_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    for _ in range(ACCEPTS_PER_TURN + 6):
        network.knock()
    await network.turn()
    assert len(network.server.connections) == ACCEPTS_PER_TURN
    await network.turn()
    assert len(network.server.connections) == ACCEPTS_PER_TURN + 6


@async_test
async def test_client_that_gave_up_does_not_hide_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    network.listening[0].queue.append(ConnectionAbortedError(errno.ECONNABORTED, "gave up"))
    network.knock()
    await network.turn()
    assert len(network.server.connections) == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
@async_test
async def test_exhausted_broker_pauses_instead_of_spinning(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = started(monkeypatch)
    network.listening[0].queue.append(OSError(number, "exhausted"))
    network.knock()
    await network.turn()
    assert network.readers == {}
    assert "Cannot accept connections: exhausted" in caplog.text
    await network.advance(RETRY_ACCEPT_MS - 1)
    assert len(network.server.connections) == 0
    await network.advance(1)
    await network.turn()
    assert len(network.server.connections) == 1


@async_test
async def test_client_gets_none_of_the_descriptors_that_are_kept_for_the_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = started(monkeypatch)
    last, beyond, later = (network.knock(number=number) for number in (999, 1000, 999))
    await network.turn()
    assert (last.is_closed, beyond.is_closed) == (False, True)
    assert "Cannot accept connections: the last descriptors are kept for the broker" in caplog.text
    assert network.readers == {}
    await network.advance(RETRY_ACCEPT_MS)
    assert not later.is_closed
    assert len(network.server.connections) == 2


@async_test
async def test_acceptor_that_pauses_when_the_server_closes_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    network.listening[0].queue.append(OSError(errno.EMFILE, "exhausted"))
    await network.turn()
    await network.server.close()
    await network.advance(RETRY_ACCEPT_MS)
    assert network.readers == {}


@async_test
async def test_client_that_is_gone_before_it_is_served_is_counted_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = started(monkeypatch, max_connections_per_ip="1")
    accepted = network.knock(fails=True)
    await network.turn()
    assert accepted.is_closed
    assert network.server.connections == {}
    assert network.server.closed_by_reason == {CloseReason.CONNECTION_FAILED: 1}
    assert caplog.text == ""
    network.knock()  # its place is free again
    await network.turn()
    assert len(network.server.connections) == 1


# -- limits


@async_test
async def test_address_with_too_many_connections_is_turned_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = started(monkeypatch, max_connections_per_ip="1")
    network.knock(HOST)
    mapped = network.knock(f"::ffff:{HOST}")  # the same one, on a socket that serves IPv6 too
    network.knock("192.0.2.2")
    await network.turn()
    assert mapped.is_closed
    assert list(network.server.connections.values()) == [HOST, "192.0.2.2"]
    assert network.server.closed_by_reason == {CloseReason.TOO_MANY_CONNECTIONS: 1}
    assert f"Rejected connection from /{HOST}, address already has the configured maximum of 1" in caplog.text


@async_test
async def test_full_broker_lets_clients_wait_until_one_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, max_connections="1")
    waiting = [network.knock() for _ in range(2)]
    await network.turn()
    assert len(network.server.connections) == 1
    assert not waiting[1].is_closed
    assert network.readers == {}  # or the poller would wake it all the time
    network.transports[0].abort()
    await network.turn()
    await network.turn()
    assert len(network.transports) == 2
    assert len(network.server.connections) == 1


@async_test
async def test_clients_that_wait_are_let_in_when_the_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, max_connections="1")
    for _ in range(3):
        network.knock()
    await network.turn()
    assert len(network.server.connections) == 1
    network.config.apply_dynamic(broker={"max.connections": "2"}, default={})
    network.server.limits_changed()
    await network.turn()
    assert len(network.server.connections) == 2
    assert network.readers == {}
    network.config.apply_dynamic(broker={"max.connections": "9"}, default={})
    network.server.limits_changed()
    await network.turn()
    assert len(network.server.connections) == 3


@async_test
async def test_those_that_were_silent_for_longest_are_closed_when_the_limit_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = started(monkeypatch, **TWO_LISTENERS)
    for listener in (1, 0, 0, 0):
        network.knock(listener=listener)
        await network.turn()
        network.clock.advance(10)
    connections = list(network.server.connections)
    connections[1].data_received(b"\0")
    network.config.apply_dynamic(broker={"max.connections": "2"}, default={})
    network.server.limits_changed()
    network.server.limits_changed()  # those that are being closed are not counted twice
    await network.turn()
    assert list(network.server.connections) == connections[:2]


@async_test
async def test_broker_that_comes_to_a_full_one_takes_the_place_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, **TWO_LISTENERS, max_connections="2")
    for listener in (0, 0, 1):
        network.knock(listener=listener)
        await network.turn()
        network.clock.advance(10)
    await network.turn()
    assert [found.listener_name for found in network.server.connections] == ["CLIENTS", "BROKERS"]
    assert [transport.is_aborted for transport in network.transports] == [True, False, False]


# -- the end of connections


@async_test
async def test_idle_connection_is_closed_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, connections_max_idle_ms="1000")
    network.knock()
    await network.turn()
    await network.advance(999)
    (connection,) = network.server.connections
    connection.data_received(b"\0")  # the first byte of a frame: somebody is there
    await network.advance(1)
    await network.advance(998)
    assert not network.transports[0].is_aborted
    await network.advance(1)
    assert network.transports[0].is_aborted
    assert network.server.closed_by_reason == {CloseReason.IDLE: 1}


@async_test
async def test_negative_limit_lets_connections_idle_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch, connections_max_idle_ms="-1")
    network.knock()
    await network.turn()
    assert network.timer.size == 0


@pytest.mark.parametrize(
    ("reason", "detail", "line"),
    [
        (CloseReason.CLIENT_CLOSED, "", None),
        (CloseReason.CONNECTION_FAILED, "reset by peer", None),
        (CloseReason.IDLE, "", None),
        (CloseReason.SHUTDOWN, "", None),
        (CloseReason.INVALID_FRAME, "TLS", "Closed connection from 192.0.2.1:50000: invalid frame: TLS"),
        (CloseReason.NOT_AUTHENTICATED, "", "Closed connection from 192.0.2.1:50000: not authenticated"),
    ],
)
@async_test
async def test_unexpected_close_reasons_are_logged(
    reason: CloseReason,
    detail: str,
    line: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = started(monkeypatch)
    network.knock()
    await network.turn()
    (connection,) = network.server.connections
    with caplog.at_level(logging.INFO, "odradek.broker.network.socket_server"):
        connection.abort(reason, detail)
        await network.turn()
    assert network.server.closed_by_reason == {reason: 1}
    assert caplog.messages == ([] if line is None else [line])


# -- closing


@async_test
async def test_stop_accepting_leaves_connections_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    network.knock()
    await network.turn()
    network.server.stop_accepting()
    assert network.readers == {}
    assert network.listening[0].fileno() == -1
    assert len(network.server.connections) == 1


@async_test
async def test_close_returns_when_the_last_connection_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    for _ in range(3):
        network.knock()
    await network.turn()
    await network.server.close()
    assert all(transport.is_aborted for transport in network.transports)
    assert network.server.connections == {}
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 3}
    assert network.readers == {}


@async_test
async def test_close_without_connections_returns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    await network.server.close()
    await network.server.close()


@async_test
async def test_close_drops_a_client_whose_handshake_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    network.knock()
    network.readers[10]()  # accepted, and in the same turn of the loop the server closes
    async with asyncio.timeout(1):
        await network.server.close()
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 1}


@async_test
async def test_close_drops_a_client_in_its_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    network = started(monkeypatch)
    network.gate = asyncio.Event()
    network.knock()
    await network.turn()
    closing = asyncio.ensure_future(network.server.close())
    await network.turn()
    assert not closing.done()
    network.gate.set()
    async with asyncio.timeout(1):
        await closing
    assert network.server.closed_by_reason == {CloseReason.SHUTDOWN: 1}
