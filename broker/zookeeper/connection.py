"""The socket of one client: frames, the start of a session, and how much may wait for this client.

The first four bytes are the length of a connect request or a four-letter word. A frame that is longer than
`jute.maxbuffer`, or that cannot be a connect request, closes this connection and no other.

A connection is not read while its session is set up, while the client does not take its answers, and while too many
requests wait in the server.

ZooKeeper: NIOServerCnxn, ZooKeeperServer.processConnectRequest.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.codes import is_word
from odradek.broker.zookeeper.jute import JuteError, Reader
from odradek.controller.tree.service_store import PASSWORD_BYTES, StoredSession

if TYPE_CHECKING:
    from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
    from odradek.broker.zookeeper.service_settings import ServiceSettings
    from odradek.broker.zookeeper.session_tracker import SessionTracker
    from odradek.broker.zookeeper.tree_thread import TreeThread
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

LENGTH_BYTES: Final = 4
WAITING_BYTES_MAX: Final = 64 << 20
"""What may wait for a client that does not read before its connection is closed."""


class Latency:
    """The shortest, the longest and the average time from a request to its answer, in milliseconds."""

    __slots__ = ("count", "last_ms", "least_ms", "most_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0
        self.least_ms = 0
        self.most_ms = 0
        self.last_ms = 0

    def add(self, ms: int) -> None:
        self.least_ms = ms if self.count == 0 else min(self.least_ms, ms)
        self.most_ms = max(self.most_ms, ms)
        self.count += 1
        self.total_ms += ms
        self.last_ms = ms

    @property
    def average_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0


class ServiceStats:
    """What `srvr` and `mntr` print. ZooKeeper: ServerStats."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.received = 0
        self.sent = 0
        self.latency = Latency()


class ConnectionOwner(Protocol):
    """What a connection needs of the server; `ZooKeeperServer` implements it."""

    settings: ServiceSettings
    clock: Clock
    sessions: SessionTracker
    stats: ServiceStats
    thread: TreeThread

    @property
    def zxid(self) -> int: ...

    def admits(self, connection: ServiceConnection) -> bool: ...

    def connection_lost(self, connection: ServiceConnection) -> None: ...

    def is_throttled(self, connection: ServiceConnection) -> bool: ...

    def request_submitted(self) -> None: ...

    def request_done(self, connection: ServiceConnection, zxid: int, received_ns: int) -> None: ...

    def connect_session(
        self, connection: ServiceConnection, timeout_ms: int, session_id: int, password: bytes | None
    ) -> None: ...

    def session_started(self, connection: ServiceConnection, session: StoredSession) -> None: ...

    def answer_word(self, connection: ServiceConnection, word: str) -> None: ...


class ServiceConnection(asyncio.Protocol):
    """See the module."""

    def __init__(self, server: ConnectionOwner) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._is_connecting = False
        self._is_old_client = False
        self._is_blocked = False
        """The client does not take its answers."""
        self._is_closed = False
        self.client = Client("")
        self.address = ("", 0)
        self.session_timeout_ms = 0
        self.closed_ms: int | None = None
        """When `close` was called, in monotonic time."""
        self.established_ms = server.clock.time_ms()
        self.made_ms = server.clock.monotonic_ms()
        self.outstanding = 0
        self.reset_stats()

    def reset_stats(self) -> None:
        self.received = 0
        self.sent = 0
        self.latency = Latency()

    @property
    def session_id(self) -> int:
        """0 before the session is there."""
        return self.client.session_id if self.session_timeout_ms else 0

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        host, port = transport.get_extra_info("peername")[:2]
        self.address = (host, port)
        self.client = Client(host)
        if not self._server.admits(self):
            self._is_closed = True
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._buffer += data
        self.take_frames()

    def pause_writing(self) -> None:
        self._is_blocked = True

    def resume_writing(self) -> None:
        self._is_blocked = False
        self.take_frames()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        self._buffer.clear()
        self._server.connection_lost(self)

    # Frames

    def take_frames(self) -> None:
        """Handle the frames that are there, as long as nothing stands against it; read on or pause."""
        while self._may_read() and len(self._buffer) >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[:LENGTH_BYTES], signed=True)
            if not self._is_initialized and is_word(bytes(self._buffer[:LENGTH_BYTES])):
                self._answer_word(bytes(self._buffer[:LENGTH_BYTES]).decode())
                return
            if not 0 <= length <= self._server.settings.max_buffer:
                logger.warning("Len error. A message from %s:%d with advertised length of %d", *self.address, length)
                self.close()
                return
            if len(self._buffer) < LENGTH_BYTES + length:
                break
            frame = bytes(self._buffer[LENGTH_BYTES : LENGTH_BYTES + length])
            del self._buffer[: LENGTH_BYTES + length]
            self._received(frame)
        self._set_reading()

    @property
    def _is_initialized(self) -> bool:
        return self._is_connecting or self.session_timeout_ms > 0

    def _may_read(self) -> bool:
        is_waiting = self._is_connecting and not self.session_timeout_ms
        return not (is_waiting or self._is_blocked or self._is_closed or self._server.is_throttled(self))

    def _set_reading(self) -> None:
        if self._transport is None or self._is_closed:
            return
        if self._may_read():
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _received(self, frame: bytes) -> None:
        self.received += 1
        self._server.stats.received += 1
        if not self._is_initialized:
            self._connect(frame)
        elif self._server.sessions.touch(self.session_id, self.session_timeout_ms):
            self._submit(frame)
        else:
            logger.debug("Dropping a request of the session 0x%x, which has ended", self.session_id)

    def _submit(self, frame: bytes) -> None:
        server, client, received_ns = self._server, self.client, self._server.clock.monotonic_ns()

        def work(processor: RequestProcessor) -> None:
            processor.request(client, frame)
            processor.output.append(partial(server.request_done, self, processor.zxid, received_ns))

        self.outstanding += 1
        server.request_submitted()
        server.thread.submit(work)

    # The session

    def _connect(self, frame: bytes) -> None:
        reader = Reader(frame)
        try:
            reader.integer()
            zxid, timeout_ms, session_id, password = reader.long(), reader.integer(), reader.long(), reader.buffer()
            self._is_old_client = reader.remaining == 0  # before 3.4 there was no flag for servers that only read
        except JuteError as error:
            logger.warning("A connect request of %s:%d cannot be decoded: %s", *self.address, error)
            self.close()
            return
        if zxid > self._server.zxid:
            logger.info(
                "Refusing session request for client %s:%d as it has seen zxid 0x%x our last zxid is 0x%x client must "
                "try another server",
                *(*self.address, zxid, self._server.zxid),
            )
            self.close()
            return
        self._is_connecting = True
        self._server.connect_session(self, timeout_ms, session_id, password)

    def session_started(self, session: StoredSession) -> None:
        """The session is on the disk."""
        self.session_timeout_ms = session.timeout_ms
        self._server.session_started(self, session)
        if self._is_closed:
            return
        self.send(self._connect_response(session))
        self.take_frames()

    def session_refused(self) -> None:
        """There is no such session, or its password is another one."""
        if not self._is_closed:
            self.send(self._connect_response(StoredSession(0, 0, bytes(PASSWORD_BYTES))))
            self.close()

    def _connect_response(self, session: StoredSession) -> bytes:
        body = jute.integer(0) + jute.integer(session.timeout_ms) + session.session_id.to_bytes(8, signed=True)
        body += jute.buffer(session.password)
        return jute.frame(body if self._is_old_client else body + b"\0")

    # Output

    def send(self, frame: bytes) -> None:
        if self._transport is None or self._is_closed:
            return
        self.sent += 1
        self._server.stats.sent += 1
        self._transport.write(frame)
        if self._transport.get_write_buffer_size() > WAITING_BYTES_MAX:
            logger.warning("The client %s:%d does not read; its connection is closed", *self.address)
            self.abort()

    def close(self) -> None:
        """Send what is waiting, then close."""
        self._is_closed = True
        if self.closed_ms is None:
            self.closed_ms = self._server.clock.monotonic_ms()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once. Requests that wait in the thread of the tree are not applied."""
        self._is_closed = self.client.is_gone = True
        if self._transport is not None:
            self._transport.abort()

    def _answer_word(self, word: str) -> None:
        self.received += 1
        self._server.stats.received += 1
        self._is_connecting = True  # nothing else is read
        self._set_reading()
        self._server.answer_word(self, word)

    def write_text(self, text: str) -> None:
        """The answer to a four-letter word; the connection is closed after it."""
        if self._transport is not None and not self._is_closed:
            self._transport.write(text.encode())
        self.close()
