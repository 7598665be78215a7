"""One whole broker on virtual time, with connections: a day of its life takes seconds.

Everything is real (owner of the sockets, connections, dispatcher, coordinators, controller, logs on a disk) except the
clock, the bytes between client and broker, the metadata server, and the pools, which work in this thread. Clients are
coroutines on the same loop: `asyncio.sleep` waits in virtual time.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar, cast

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.machine import Machine
from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.listeners.socket_server import SocketServer
from odradek.broker.server import KafkaServer
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.storage.disk.file_system import OsFileSystem
from tests.support.in_process.connections.network import fill_buffer
from tests.support.simulation.environment.inline_pools import DelayedIoPool, DelayedWorkerPool
from tests.support.simulation.environment.network import Network
from tests.support.simulation.environment.tree_server import TreeClient, TreeServer
from tests.support.simulation.environment.virtual_loop import EPOCH_MS, VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.config.endpoint import EndPoint
    from odradek.protocol.codec.schema import Request, Response

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound="Response")

PORT: Final = 9092
SESSION_TIMEOUT_MS: Final = 18_000
LISTENER: Final = "PLAINTEXT"

SETTINGS: Final = {
    "broker.id": "1",
    "zookeeper.connect": "zookeeper:2181",
    "listeners": f"PLAINTEXT://127.0.0.1:{PORT}",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "odradek.event.loop.pause.ms": "0",
}
"""What a broker that is alone needs. All intervals keep Apache Kafka's defaults."""


class LoneBroker:
    """A broker that serves when the constructor returns. `now_ms` is the time since it began."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, *, seed: int = 1) -> None:
        rng = Random(seed)
        self.loop = VirtualLoop(Random(rng.random()))
        self._tree = TreeServer(Network(self.loop, Random(rng.random())))
        self._config = BrokerConfig({**SETTINGS, "log.dirs": str(directory), **(settings or {})})
        self._sockets: VirtualSockets | None = None
        self.server = self.run(self._make(rng))
        self.run(self.server.start())

    @property
    def now_ms(self) -> int:
        return self.loop.now_us // 1000

    @property
    def wall_ms(self) -> int:
        """What timestamps of records are compared with."""
        return EPOCH_MS + self.now_ms

    @property
    def services(self) -> Services:
        assert self.server._services is not None
        return self.server._services

    @property
    def sockets(self) -> VirtualSockets:
        assert self._sockets is not None
        return self._sockets

    def run(self, work: Coroutine[object, object, T], within_ms: int = 60_000) -> T:
        """Run a coroutine to its end. What nobody handled meanwhile fails."""
        result = self.loop.run(work, within_ms)
        for failure in self.loop.failures:
            raise failure if isinstance(failure, BaseException) else AssertionError(failure)
        return result

    def stop(self) -> None:
        self.run(self.server.stop())
        self.loop.close()

    def connect(self, host: str = "10.0.0.7") -> Peer:
        return self.sockets.connect(host)

    async def _make(self, rng: Random) -> KafkaServer:
        loop = self.loop

        def make_sockets(*parts: object) -> VirtualSockets:
            self._sockets = VirtualSockets(*parts)  # type: ignore[arg-type]
            return self._sockets

        return KafkaServer(
            self._config,
            clock=VirtualClock(loop),
            make_sockets=make_sockets,
            open_tree=lambda config, clock, on_failure: TreeClient(
                self._tree, loop.world, SESSION_TIMEOUT_MS
            ).connect(),
            machine=Machine(
                io_pool=DelayedIoPool(loop, rng), workers=DelayedWorkerPool(loop, rng), rng=rng, fs=_UnsyncedFiles()
            ),
        )


class _UnsyncedFiles(OsFileSystem):
    """Files without fsync: there is no loss of power here, and a day has thousands of checkpoints."""

    def sync(self, fd: int) -> None: ...

    def sync_path(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        self._write_anew(path, content)

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        self._write_anew(path, content)

    def _write_anew(self, path: str, content: bytes) -> None:
        """File systems write a file back at once when it is cut, or when another is renamed to its name."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        super().write_file(path, content)


class VirtualSockets(SocketServer):
    """The broker's socket server without ports: `connect` gives it an accepted connection."""

    async def open(self) -> tuple[EndPoint, ...]:
        await self._quotas.start()
        self.end_points = tuple(point._replace(port=PORT) for point in self._config.listeners.bound)
        return self.end_points

    def connect(self, host: str) -> Peer:
        assert self._quotas.acquire(host, LISTENER)
        connection = Connection(self, LISTENER, self._config.socket_request_max_bytes)
        self.connections[connection] = host
        peer = Peer(self, connection, host)
        connection.connection_made(cast("asyncio.BaseTransport", peer.transport))
        return peer


class Peer:
    """A client's end of one connection. `closed_ms` is when the broker closed it."""

    def __init__(self, sockets: VirtualSockets, connection: Connection, host: str) -> None:
        self._clock = sockets.clock
        self._received = bytearray()
        self._correlation_id = 0
        self._waiting: dict[int, tuple[RequestHeader, asyncio.Future[Response]]] = {}
        self.closed_ms: int | None = None
        self.connection = connection
        self.transport = _Transport(self, host)

    def send(self, request: Request, version: int, *, client_id: str = "client") -> asyncio.Future[Response]:
        """A future of the answer; ConnectionResetError if the connection is closed first."""
        self._correlation_id += 1
        header = RequestHeader(ApiKey(request.API_KEY), version, self._correlation_id, client_id)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[self._correlation_id] = (header, answer)
        body = encode_request(header, request)
        self.transport.receive(struct.pack(">i", len(body)) + body)
        return answer

    async def call(
        self, request: Request, answer: type[ResponseT], version: int, *, client_id: str = "client"
    ) -> ResponseT:
        found = await self.send(request, version, client_id=client_id)
        assert isinstance(found, answer)
        return found

    def close(self) -> None:
        """The client closes the connection."""
        self.transport.abort()

    def answered(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            header, answer = self._waiting.pop(int.from_bytes(frame[:4], "big"))
            answer.set_result(decode_response(header.api_key, header.api_version, frame)[1])

    def lost(self) -> None:
        self.closed_ms = self._clock.monotonic_ms()
        for _, answer in self._waiting.values():
            answer.set_exception(ConnectionResetError("the broker closed the connection"))
        self._waiting.clear()


class _Transport:
    """The used part of asyncio.Transport: the peer reads everything at once."""

    def __init__(self, peer: Peer, host: str) -> None:
        self._peer = peer
        self._protocol: object = peer.connection
        self._is_closed = False
        self._extra = {"peername": (host, 40_000), "sockname": ("127.0.0.1", PORT)}

    def get_extra_info(self, name: str) -> object:
        return self._extra.get(name)

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes | memoryview) -> None:
        self._peer.answered(bytes(data))

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: object) -> None:
        self._protocol = protocol

    def get_protocol(self) -> object:
        return self._protocol

    def abort(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            asyncio.get_running_loop().call_soon(self._lost)

    def receive(self, data: bytes) -> None:
        """Bytes come in; a large frame is received by a protocol of its own."""
        view = memoryview(data)
        while view and not self._is_closed:
            protocol = self._protocol
            if protocol is self._peer.connection:
                self._peer.connection.data_received(bytes(view))
                return
            view = fill_buffer(protocol, view)

    def _lost(self) -> None:
        self._peer.connection.connection_lost(None)
        self._peer.lost()
