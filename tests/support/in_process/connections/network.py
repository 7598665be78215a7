"""A connection without sockets: a transport, a direct socket and a server that record what is asked of them."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from typing import cast

from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.listeners.connection_quotas import ConnectionPriorities
from odradek.broker.network.requests.large_requests import AbandonedRequests
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.responses.response_sender import ResponseSender, SentBytes
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from odradek.timer.task import TimerTask

MAX_FRAME = 1_000_000


class Wire:
    """What the peer has received, from the transport and from the direct socket, in order."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.writers: list[str] = []


class FakeTransport:
    """Keeps the contract that the sender relies on: it pauses whenever it could not pass on everything at once."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.protocol: object = None
        self.room: int | None = None
        """Bytes the kernel still takes; None for any number."""
        self.pending = bytearray()
        self.is_reading = True
        self.has_ended = False
        """The peer has shut down its writing side: loops differ in what pausing and resuming would do now."""
        self.is_aborted = False
        self.is_closed = False
        """Closed as soon as everything is passed on."""
        self.high_water: int | None = None
        self.extra: dict[str, object] = {
            "peername": ("192.0.2.1", 50000),
            "sockname": ("127.0.0.1", 9092),
            "socket": object(),
        }

    def get_extra_info(self, name: str) -> object:
        return self.extra.get(name)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high_water = high

    def write(self, data: bytes | memoryview) -> None:
        assert not self.pending, "written while the transport's buffer was not empty"
        self.pending += data
        self._pass_on()
        if self.pending:
            self.protocol.pause_writing()  # type: ignore[attr-defined]

    def take(self, count: int | None) -> None:
        """The kernel takes `count` more bytes (None: all); resumes the protocol when nothing is left."""
        self.room = count
        had_pending = bool(self.pending)
        self._pass_on()
        if had_pending and not self.pending:
            self.protocol.resume_writing()  # type: ignore[attr-defined]

    def _pass_on(self) -> None:
        count = len(self.pending) if self.room is None else min(self.room, len(self.pending))
        if count:
            self.wire.data += self.pending[:count]
            self.wire.writers.append("transport")
            del self.pending[:count]
            if self.room is not None:
                self.room -= count

    def pause_reading(self) -> None:
        assert self.is_reading
        assert not self.has_ended
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        assert not self.has_ended
        self.is_reading = True

    def set_protocol(self, protocol: object) -> None:
        assert not self.has_ended
        self.protocol = protocol

    def get_protocol(self) -> object:
        return self.protocol

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_closed = True


class FakeDirectSocket:
    """`room` is what the socket's buffer still takes."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.room = 10**9
        self.writable: Callable[[], None] | None = None
        self.is_closed = False
        self.sent_with_more: list[bool] = []

    def send(self, data: bytes | memoryview, *, more: bool) -> int:
        count = self._reserve(len(data))
        self.sent_with_more.append(more)
        self._record(bytes(data[:count]), "send")
        return count

    def sendfile(self, fd: int, position: int, count: int) -> int:
        data = os.pread(fd, self._reserve(count), position)
        self.room += count - len(data) if len(data) < count <= self.room else 0
        self._record(data, "sendfile")
        return len(data)

    def wait_writable(self, callback: Callable[[], None]) -> None:
        assert not self.is_closed
        assert self.writable is None
        self.writable = callback

    def close(self) -> None:
        self.is_closed = True
        self.writable = None

    def make_room(self, count: int) -> None:
        """The peer has read: the poller wakes the waiting sender."""
        self.room = count
        callback, self.writable = self.writable, None
        assert callback is not None
        callback()

    def _reserve(self, count: int) -> int:
        if not self.room:
            raise BlockingIOError
        taken = min(count, self.room)
        self.room -= taken
        return taken

    def _record(self, data: bytes, writer: str) -> None:
        self.wire.data += data
        self.wire.writers.append(writer)


class MemoryRegion:
    """A region of a file that exists in memory only; counts its pins."""

    def __init__(self, content: bytes, *, position: int = 0, claimed_size: int | None = None) -> None:
        self._fd = os.memfd_create("segment")
        os.write(self._fd, bytes(position) + content)
        self.position = position
        self.size_in_bytes = len(content) if claimed_size is None else claimed_size
        self.pins = 0
        self.was_retained = False

    def fileno(self) -> int:
        return self._fd

    def retain(self) -> None:
        self.pins += 1
        self.was_retained = True

    def release(self) -> None:
        self.pins -= 1

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def close(self) -> None:
        os.close(self._fd)


class LaterIoPool:
    """Runs work when the test calls for it."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        self.jobs.append(lambda: InlineIoPool().submit(work, done))

    def run(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job()


class FakeOwner:
    """The server a connection belongs to. `handle` plays the dispatcher."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_000_000)
        self.io_pool = InlineIoPool()
        self.frame_buffers = FrameBuffers()
        self.memory_pool: MemoryPool | None = None
        self.sent_bytes: SentBytes | None = None
        self.abandoned = AbandonedRequests(lambda: None)
        self.soon: list[Callable[[], None]] = []
        self.direct_sockets: dict[object, FakeDirectSocket] = {}
        self.closed: list[tuple[CloseReason, str]] = []
        self.priorities: ConnectionPriorities[Connection] = ConnectionPriorities()
        self.handle: Callable[[Connection, memoryview, int], None] = lambda connection, frame, now: None

    def dispatch(self, connection: Connection, frame: memoryview, received_ms: int) -> None:
        self.handle(connection, frame, received_ms)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def run_soon(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

    def open_direct(self, transport: object) -> FakeDirectSocket:
        return self.direct_sockets[transport]

    def receiver_of(self, connection: Connection) -> asyncio.BaseProtocol:
        return connection

    def identify(self, connection: Connection) -> None: ...

    def watch_idle(self, connection: Connection) -> TimerTask | None:
        return None

    def connection_closed(self, connection: Connection, reason: CloseReason, detail: str) -> None:
        self.closed.append((reason, detail))


def fill_buffer(protocol: object, data: memoryview) -> memoryview:
    """Receive into the buffer of a BufferedProtocol, as loops do. Returns what has no place in it."""
    assert isinstance(protocol, asyncio.BufferedProtocol)
    space = cast("memoryview", protocol.get_buffer(-1))
    count = min(len(space), len(data))
    space[:count] = data[:count]
    del space
    protocol.buffer_updated(count)
    return data[count:]


class FakeThrottle:
    """Mutes a connection until it is removed from the throttles."""

    def __init__(self) -> None:
        self.is_abandoned = False

    def abandon(self) -> None:
        self.is_abandoned = True


class Link:
    """A connection between a fake owner and a fake wire."""

    def __init__(self, owner: FakeOwner | None = None, *, max_frame_bytes: int = MAX_FRAME) -> None:
        self.owner = owner or FakeOwner()
        self.wire = Wire()
        self.transport = FakeTransport(self.wire)
        self.direct = FakeDirectSocket(self.wire)
        self.connection = Connection(self.owner, "PLAINTEXT", max_frame_bytes)
        self.owner.direct_sockets[self.transport] = self.direct
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def receive(self, data: bytes) -> None:
        """Bytes arrive, by whichever protocol object the transport has at the moment."""
        view = memoryview(data)
        while view:
            assert self.transport.is_reading, "bytes arrived although reading is paused"
            protocol = self.transport.protocol
            if protocol is self.connection:
                self.connection.data_received(bytes(view))
                return
            view = fill_buffer(protocol, view)

    def end(self) -> None:
        """The peer shuts down its writing side; as loops do, the transport is closed unless the protocol objects."""
        assert self.transport.is_reading, "the end arrived although reading is paused"
        self.transport.has_ended = True
        if not self.transport.protocol.eof_received():  # type: ignore[attr-defined]
            self.transport.is_aborted = True


class Sent:
    """A response sender with its fakes around it, reporting to itself."""

    def __init__(self, *, bypass: bool = True, io_pool: object = None, direct_error: OSError | None = None) -> None:
        self.wire = Wire()
        self.transport = FakeTransport(self.wire)
        self.transport.protocol = self
        self.direct = FakeDirectSocket(self.wire)
        self.ready = 0
        self.moved = 0
        self.broken: list[tuple[CloseReason, str]] = []
        self.soon: list[Callable[[], None]] = []
        self._direct_error = direct_error
        self.sender = ResponseSender(
            self.transport,
            self,
            self._open_direct if bypass else None,
            io_pool or InlineIoPool(),  # type: ignore[arg-type]
            self.soon.append,
        )

    def _open_direct(self) -> FakeDirectSocket:
        if self._direct_error is not None:
            raise self._direct_error
        return self.direct

    def pause_writing(self) -> None:
        self.sender.pause()

    def resume_writing(self) -> None:
        self.sender.resume()

    def sender_ready(self) -> None:
        self.ready += 1

    def sender_moved(self) -> None:
        self.moved += 1

    def sender_broken(self, reason: CloseReason, detail: str) -> None:
        self.broken.append((reason, detail))


PRODUCE, FETCH, HEARTBEAT = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.HEARTBEAT


class Handlers(FakeOwner):
    """Plays dispatcher and handlers: every request is kept until the test answers it."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[RequestContext] = []
        self.frames: list[bytes] = []
        self.answer_at_once: set[ApiKey] = set()
        self.handle = self._handle

    def _handle(self, connection: Connection, frame: memoryview, received_ms: int) -> None:
        key, _, correlation_id = struct.unpack_from(">hhi", frame)
        self.frames.append(bytes(frame))
        ctx = RequestContext(RequestHeader(key, 0, correlation_id), connection, received_ms, len(frame))
        connection.begin(ctx)
        if key in self.answer_at_once:
            answer(ctx)
            return
        ctx.may_pipeline = key == PRODUCE
        self.waiting.append(ctx)

    @property
    def applied(self) -> list[int]:
        return [struct.unpack_from(">i", frame, 4)[0] for frame in self.frames]


def request(key: ApiKey, correlation_id: int, size: int = 0) -> bytes:
    body = struct.pack(">hhi", key, 0, correlation_id) + bytes(size)
    return struct.pack(">i", len(body)) + body


def answer(ctx: RequestContext) -> None:
    response = {PRODUCE: ProduceResponse, FETCH: FetchResponse, HEARTBEAT: HeartbeatResponse}
    ctx.reply(response[ApiKey(ctx.header.api_key)]())


def answered(link: Link) -> list[int]:
    """Correlation ids of the responses the peer has received, in order."""
    found, position = [], 0
    data = bytes(link.wire.data)
    while position < len(data):
        size, correlation_id = struct.unpack_from(">ii", data, position)
        found.append(correlation_id)
        position += 4 + size
    return found
