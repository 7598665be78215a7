"""The service: connections, sessions with their time-outs, the thread of the tree, and what operators ask about.

A client that comes back within its time-out keeps its session, also after a restart of the service: the time-outs of
the stored sessions begin anew at the start.

ZooKeeper: ZooKeeperServer, NIOServerCnxnFactory.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.sockets.stream_server import stop_listening
from odradek.broker.zookeeper.connection import ServiceConnection, ServiceStats
from odradek.broker.zookeeper.four_letter_words import WordAnswers
from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
from odradek.broker.zookeeper.session_tracker import SessionTracker
from odradek.broker.zookeeper.tree_thread import TreeThread
from odradek.controller.tree.private_file import IN_MEMORY
from odradek.controller.tree.service_store import SERVICE_FILE, StoredSession, StoreUnavailable

if TYPE_CHECKING:
    from odradek.broker.zookeeper.service_settings import ServiceSettings
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

SESSIONLESS_TIMEOUT_MS: Final = 10_000
"""A connection that has asked for no session by then is closed. ZooKeeper: zookeeper.nio.sessionlessCnxnTimeout."""

CLOSE_TIMEOUT_MS: Final = 10_000
"""A client that has not taken what it was sent so long after the end of its session or connection is dropped."""

_NS_PER_MS: Final = 1_000_000


class ZooKeeperServer:
    """See the module."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.sessions = SessionTracker(clock, settings.tick_time_ms)
        self.stats = ServiceStats()
        self.connections: dict[ServiceConnection, None] = {}
        self.outstanding = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with the error if the database fails."""
        self.thread = TreeThread(self.database_path, clock, self._session_ended, self._fail)
        self._zxid = 0
        self._by_session: dict[int, ServiceConnection] = {}
        self._by_address: Counter[str] = Counter()
        self._throttled: dict[ServiceConnection, None] = {}
        self._words = WordAnswers(self)
        self._word_tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._ticks: asyncio.TimerHandle | None = None
        self._started_ms = self._containers_ms = clock.monotonic_ms()
        self.port = settings.port

    @property
    def database_path(self) -> str:
        """`:memory:` as the directory keeps nothing."""
        directory = self.settings.directory
        return IN_MEMORY if directory == IN_MEMORY else os.path.join(directory, SERVICE_FILE)

    @property
    def zxid(self) -> int:
        """The zxid of the last answer that was sent."""
        return self._zxid

    @property
    def uptime_ms(self) -> int:
        return self.clock.monotonic_ms() - self._started_ms

    def data_bytes(self) -> int:
        """The size of the database and its log; 0 in memory."""
        paths = (self.database_path, self.database_path + "-wal")
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

    # Start and stop

    async def start(self) -> None:
        """Raises StartupError if the database or the port cannot be opened."""
        try:
            if self.settings.directory != IN_MEMORY:
                os.makedirs(self.settings.directory, exist_ok=True)
            for session in await self.thread.open():
                self.sessions.track(session)
            await self.thread.ask(self._read_zxid)
        except (StoreUnavailable, OSError) as error:
            raise StartupError(str(error)) from error
        try:
            backlog = self.settings.backlog if self.settings.backlog > 0 else 100
            self._listener = await asyncio.get_running_loop().create_server(
                lambda: ServiceConnection(self), self.settings.host, self.settings.port, backlog=backlog
            )
        except OSError as error:
            await self.thread.close()
            raise StartupError(f"cannot listen on {self.settings.host}:{self.settings.port}: {error}") from error
        self.port = self._listener.sockets[0].getsockname()[1]
        self._next_tick()

    async def stop(self) -> None:
        """Close all connections, apply what was received, close the database. Sessions outlive the stop."""
        if self._ticks is not None:
            self._ticks.cancel()
        if self._listener is not None:
            await stop_listening(self._listener)
        for connection in list(self.connections):
            connection.close()
        if self._word_tasks:
            await asyncio.wait(self._word_tasks)
        await self.thread.close()
        for connection in list(self.connections):
            connection.abort()

    def _fail(self, error: Exception) -> None:
        for connection in list(self.connections):
            connection.close()
        if not self.failed.done():
            self.failed.set_exception(error)

    def _read_zxid(self, processor: RequestProcessor) -> str:
        self._zxid = processor.zxid
        return ""

    # Time

    def _next_tick(self) -> None:
        tick_ms = self.settings.tick_time_ms
        wait_ms = tick_ms - self.clock.monotonic_ms() % tick_ms
        self._ticks = asyncio.get_running_loop().call_later(wait_ms / 1000, self._tick)

    def _tick(self) -> None:
        self.expire()
        self._next_tick()

    def expire(self) -> None:
        """End the sessions whose time is over, and the connections that have asked for none or do not go away."""
        for session_id in self.sessions.take_expired():
            logger.info("Expiring session 0x%x", session_id)
            self.thread.submit(partial(_end_session, session_id))
        now_ms = self.clock.monotonic_ms()
        for connection in list(self.connections):
            if connection.closed_ms is not None and now_ms - connection.closed_ms >= CLOSE_TIMEOUT_MS:
                connection.abort()
            elif not connection.session_id and now_ms - connection.made_ms >= SESSIONLESS_TIMEOUT_MS:
                connection.close()
        if now_ms - self._containers_ms >= self.settings.container_interval_ms:
            self._containers_ms = now_ms
            self.thread.submit(RequestProcessor.remove_unused_containers)

    # Connections

    def admits(self, connection: ServiceConnection) -> bool:
        """Count a new connection; False if its address, or the server, has too many."""
        limit, limit_in_all = self.settings.max_client_connections, self.settings.max_connections
        address = connection.client.address
        if 0 < limit <= self._by_address[address]:
            logger.warning("Too many connections from %s - max is %d", address, limit)
            return False
        if 0 < limit_in_all <= len(self.connections):
            logger.warning("Too many connections - max is %d", limit_in_all)
            return False
        self.connections[connection] = None
        self._by_address[address] += 1
        return True

    def connection_lost(self, connection: ServiceConnection) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._throttled.pop(connection, None)
        self._by_address[connection.client.address] -= 1
        if not self._by_address[connection.client.address]:
            del self._by_address[connection.client.address]
        if self._by_session.get(connection.session_id) is connection:
            del self._by_session[connection.session_id]
        client = connection.client
        self.thread.submit(lambda processor: processor.connection_lost(client))

    # Requests

    def is_throttled(self, connection: ServiceConnection) -> bool:
        """Whether too many requests wait in the server, so that this connection is not read."""
        if connection.outstanding == 0 or self.outstanding < self.settings.outstanding_max:
            return False
        self._throttled[connection] = None
        return True

    def request_submitted(self) -> None:
        self.outstanding += 1

    def request_done(self, connection: ServiceConnection, zxid: int, received_ns: int) -> None:
        self._zxid = max(self._zxid, zxid)
        self.outstanding -= 1
        connection.outstanding -= 1
        latency_ms = (self.clock.monotonic_ns() - received_ns) // _NS_PER_MS
        self.stats.latency.add(latency_ms)
        connection.latency.add(latency_ms)
        if self._throttled and self.outstanding < self.settings.outstanding_max:
            throttled, self._throttled = self._throttled, {}
            for waiting in throttled:
                waiting.take_frames()

    # Sessions

    def connect_session(
        self, connection: ServiceConnection, timeout_ms: int, session_id: int, password: bytes | None
    ) -> None:
        """Begin a session, or go on with one; `session_id` 0 is a new one."""
        least, most = self.settings.min_session_timeout_ms, self.settings.max_session_timeout_ms
        timeout_ms = min(max(timeout_ms, least), most)
        client = connection.client
        if session_id == 0:
            self.thread.submit(lambda processor: processor.start_session(client, connection, timeout_ms))
            return
        session = self.sessions.find(session_id, password)
        if session is None:
            logger.info("Invalid session 0x%x for client %s:%d, probably expired", session_id, *connection.address)
            connection.session_refused()
            return
        earlier = self._by_session.pop(session_id, None)
        if earlier is not None:
            earlier.close()
        self.sessions.touch(session_id, timeout_ms)
        stored = StoredSession(session_id, timeout_ms, session.password)
        self.thread.submit(lambda processor: processor.resume_session(client, connection, stored))

    def session_started(self, connection: ServiceConnection, session: StoredSession) -> None:
        """The session is on the disk. Its client may have gone meanwhile; then it times out."""
        if not self.sessions.touch(session.session_id, session.timeout_ms):
            self.sessions.track(session)
        if connection in self.connections:
            self._by_session[session.session_id] = connection

    def _session_ended(self, session_id: int) -> None:
        self.sessions.remove(session_id)
        connection = self._by_session.pop(session_id, None)
        if connection is not None:
            connection.close()

    # Four-letter words

    def answer_word(self, connection: ServiceConnection, word: str) -> None:
        task = asyncio.get_running_loop().create_task(self._words.answer(connection, word))
        self._word_tasks.add(task)
        task.add_done_callback(self._word_tasks.discard)


def _end_session(session_id: int, processor: RequestProcessor) -> None:
    processor.end_session(session_id)
