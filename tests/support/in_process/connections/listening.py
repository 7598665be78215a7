"""A socket server whose listening sockets, poller and transports are fakes."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners.socket_server import SocketServer
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.connections.network import FakeTransport, Wire

HOST = "192.0.2.1"
FIRST_FD = 20


class AcceptedSocket:
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

    def dup(self) -> AcceptedSocket:
        return AcceptedSocket(self.number)

    def close(self) -> None:
        self.is_closed = True


class ListeningSocket:
    """Clients wait in `queue`; an OSError in it is raised by `accept`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.queue: deque[tuple[AcceptedSocket, str] | OSError] = deque()

    def fileno(self) -> int:
        return self.number

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 40_000 + self.number

    def accept(self) -> tuple[AcceptedSocket, tuple[str, int]]:
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


class Listening:
    """A server whose listening sockets, poller and transports are fakes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        self.config = config = BrokerConfig({key.replace("_", "."): value for key, value in settings.items()})
        self.clock = ManualClock(1_000_000)
        self.timer = SystemTimer(self.clock)
        self.server = SocketServer(config, self.clock, self.timer, InlineIoPool(), lambda *request: None)
        self.server.fd_limit = 1000
        self.listening: list[ListeningSocket] = []
        self.refuse_from: int | None = None
        self.readers: dict[int, Callable[[], None]] = {}
        self.transports: list[_Transport] = []
        self.peername: tuple[str, int] | None = HOST, 50_000
        """What the sockets of connected clients have; None after a reset."""
        self.gate: asyncio.Event | None = None
        """Keeps clients in their handshake until it is set."""
        monkeypatch.setattr("odradek.broker.network.listeners.socket_server.open_listening_socket", self._open)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "add_reader", self._add_reader)
        monkeypatch.setattr(loop, "remove_reader", self._remove_reader)
        monkeypatch.setattr(loop, "connect_accepted_socket", self._connect)

    def _open(self, end_point: object, *, receive_buffer_bytes: int, backlog: int) -> ListeningSocket:
        if len(self.listening) == self.refuse_from:
            raise StartupError("taken")
        self.listening.append(ListeningSocket(10 + len(self.listening)))
        return self.listening[-1]

    def _add_reader(self, number: int, callback: Callable[[], None]) -> None:
        assert number not in self.readers
        self.readers[number] = callback

    def _remove_reader(self, number: int) -> None:
        del self.readers[number]

    async def _connect(self, make_protocol: Callable[[], asyncio.Protocol], accepted: AcceptedSocket) -> None:
        if self.gate is not None:
            await self.gate.wait()
        transport = _Transport(Wire())
        transport.extra["peername"] = self.peername
        self.transports.append(transport)
        transport.protocol = protocol = make_protocol()
        protocol.connection_made(transport)  # type: ignore[arg-type]

    # What clients do

    def knock(
        self, host: str = HOST, *, listener: int = 0, number: int = FIRST_FD, fails: bool = False
    ) -> AcceptedSocket:
        accepted = AcceptedSocket(number, fails=fails)
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


async def started(monkeypatch: pytest.MonkeyPatch, **settings: str) -> Listening:
    network = Listening(monkeypatch, **settings)
    await network.server.open()
    network.server.start_accepting()
    return network


TWO_LISTENERS = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093",
    "listener_security_protocol_map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter_broker_listener_name": "BROKERS",
}
