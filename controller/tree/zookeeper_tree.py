"""The metadata tree in a ZooKeeper: keeps the session, the requests and the watches over several connections.

* **Requests** are sent in the order of one queue, at most `max_in_flight_requests` without a response. Without a
  connection they wait. Requests in flight when a connection is lost are sent again first. A conditional write that had
  reached the server is refused then; its caller must check whether the node holds its own write.
* **Reads** without watchers that follow each other in a batch go to the server 32 in a request, where it knows that.
* **Watches** are set again after every reconnect, before any other request is sent (`zookeeper_watches`).
* **A session** continues over several connections until the server reports that it has expired. Then all its requests
  fail with SessionExpired, and so do new ones until all listeners have returned. After that the next session begins,
  and requests belong to it.

All of this runs on the loop.

Kafka: ZooKeeperClient, KafkaZkClient.retryRequestsUntilConnected.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from kazoo.exceptions import UnimplementedError

from odradek.controller.tree.metadata_tree import (
    BadArguments,
    ConnectionLoss,
    Create,
    Exists,
    GetData,
    MetadataTree,
    NodeExists,
    Operation,
    SessionExpired,
    SessionListener,
    TreeError,
    WatchEvent,
    check_path,
)
from odradek.controller.tree.zookeeper_connection import Connection, ConnectionEvents, End, KazooConnection, Session
from odradek.controller.tree.zookeeper_multi_read import READS_TOGETHER_MIN, ReadTogether
from odradek.controller.tree.zookeeper_requests import ZooKeeperRequests, path_of, size_bytes
from odradek.controller.tree.zookeeper_settings import REQUESTS_IN_FLIGHT_MAX
from odradek.controller.tree.zookeeper_tls import tls_context
from odradek.controller.tree.zookeeper_watches import Watches
from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings

REQUEST_BYTES_MAX: Final = 0xFFFFF - 64
"""A server's default limit of a request (jute.maxbuffer) without the header. Larger requests are not sent again."""

CLOSE_TIMEOUT_S: Final = 5.0
"""How long `close` waits for the server to close the session; after that the session times out on the server."""

ABANDON_TIMEOUT_S: Final = 1.0
"""How long `close` waits for kazoo's thread, which may be connecting to a server that does not answer."""

RETRY_S: Final = 1.0
"""The delay before a refused session is asked for again, and between the begins of two connections of a session.

ZooKeeper's client waits up to a second before each reconnect.
"""

SESSION_EVENTS: Final[Mapping[End, str]] = {
    End.DROPPED: "Disconnects",
    End.EXPIRED: "Expires",
    End.AUTH_FAILED: "AuthFailures",
}
"""How Kafka names the events. Each connection is a `SyncConnects`."""

logger = logging.getLogger("odradek.controller")

ResultT = TypeVar("ResultT")


class _State(Enum):
    OPENING = "opening"
    """A new session is requested and has not begun."""
    ALIVE = "alive"
    """There is a session, with or without a connection."""
    LOST = "lost"
    """The session has expired, and not all listeners have returned."""
    CLOSED = "closed"


class _Batch:
    """Operations whose results are returned together."""

    def __init__(self, size: int, future: asyncio.Future[list[object]]) -> None:
        self.results: list[object] = [None] * size
        self.open_count = size
        self.future = future

    def settle(self, index: int, result: object) -> None:
        self.results[index] = result
        self.open_count -= 1
        if not self.open_count and not self.future.done():
            self.future.set_result(self.results)

    def fail(self, error: TreeError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Request:
    """One operation that is queued or in flight. A reread of a watched node belongs to no batch."""

    __slots__ = ("batch", "index", "operation", "requests", "sent_s", "wire")

    def __init__(
        self, operation: Operation[object], requests: ZooKeeperRequests, batch: _Batch | None = None, index: int = 0
    ) -> None:
        self.operation = operation
        self.requests = requests
        self.wire = requests.request(operation)
        self.batch = batch
        self.index = index
        self.sent_s = 0.0
        """When it was sent, by the clock of the loop."""

    def alone(self) -> list[_Request]:
        """The reads of a ReadTogether as requests of their own."""
        assert isinstance(self.operation, ReadTogether)
        pairs = zip(self.operation.indexes, self.operation.reads, strict=True)
        return [_Request(read, self.requests, self.batch, index) for index, read in pairs]


MakeConnection: TypeAlias = Callable[["ZooKeeperSettings", "Session | None", ConnectionEvents], Connection]


class ZooKeeperTree(MetadataTree):
    """See the module. Implements MetadataTree; `open` makes one.

    Without `waits_for_server`, requests fail with ConnectionLoss when the connection is lost, instead of waiting.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        *,
        waits_for_server: bool = True,
        make_connection: MakeConnection = KazooConnection,
    ) -> None:
        self._settings = settings
        self._waits_for_server = waits_for_server
        self._make_connection = make_connection
        self._in_flight_max = min(settings.max_in_flight_requests, REQUESTS_IN_FLIGHT_MAX)
        self._loop = asyncio.get_running_loop()
        self._state = _State.OPENING
        self._session: Session | None = None
        self._session_id = 0
        self._connection: Connection | None = None
        self._is_connected = False
        self._began_s = -math.inf
        """When the last connection began, by the clock of the loop."""
        self._reconnect: asyncio.TimerHandle | None = None
        """The delayed begin of a connection."""
        self._opened: asyncio.Future[End | None] = self._loop.create_future()
        """None when the requested session has begun, else how the connection ended."""
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._waiting: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self._reads_together = True
        """Whether the server is believed to know MultiRead."""
        self._watches = Watches()
        self._requests = ZooKeeperRequests(settings.chroot, sets_acl=settings.sets_acl)
        self.session_events: Counter[str] = Counter()
        """Of the connection and the session, by the names of Kafka's meters (`SESSION_EVENTS`)."""
        self.latency_ms = Histogram()
        """From the sending of a request to its response."""
        self._listeners: list[SessionListener] = []
        self._renewal: asyncio.Task[None] | None = None

    # Open and close

    @classmethod
    async def open(
        cls, settings: ZooKeeperSettings, *, waits_for_server: bool = True, creates_chroot: bool = True
    ) -> ZooKeeperTree:
        """Begin a session. Raises ConnectionLoss if no server accepts one within the connection timeout."""
        tree = cls(settings, waits_for_server=waits_for_server)
        try:
            await tree.connect()
            if creates_chroot:
                await tree.create_chroot()
        except BaseException:
            await tree.close()
            raise
        return tree

    async def connect(self) -> None:
        """Begin the first session. Raises ConnectionLoss, BadTls, and what `Connection.start` raises."""
        timeout_ms = self._settings.connection_timeout_ms
        if self._settings.tls is not None:
            tls_context(self._settings.tls)
        self._begin_connection()
        try:
            refused = await asyncio.wait_for(asyncio.shield(self._opened), timeout_ms / 1000)
        except TimeoutError:
            message = f"no ZooKeeper server at {self._settings.hosts} answered within {timeout_ms} ms"
            raise ConnectionLoss("", message) from None
        if refused is not None:
            raise ConnectionLoss("", f"ZooKeeper at {self._settings.hosts}: {refused.value}")

    async def create_chroot(self) -> None:
        """Create the chroot, the parent of all nodes, if it does not exist.

        Only what is missing: ZooKeeper refuses to create a node that exists below a parent whose ACL forbids it.

        Kafka: KafkaZkClient.apply.
        """
        names = self._settings.chroot.split("/")[1:]
        paths = ["/" + "/".join(names[:depth]) for depth in range(1, len(names) + 1)]
        from_root = ZooKeeperRequests("", sets_acl=self._settings.sets_acl)
        stats = await self._submit([Exists(path) for path in paths], from_root)
        missing = [path for path, stat in zip(paths, stats, strict=True) if stat is None]
        for result in await self._submit([Create(path) for path in missing], from_root):
            if isinstance(result, TreeError) and not isinstance(result, NodeExists):
                raise result

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def is_disconnected(self) -> bool:
        return not self._is_connected

    @property
    def is_closed(self) -> bool:
        return self._state is _State.CLOSED

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._state is _State.CLOSED:
            return
        self._state = _State.CLOSED
        if self._reconnect is not None:
            self._reconnect.cancel()
        if self._renewal is not None and not self._renewal.done():
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        self._fail_all(SessionExpired("", "the metadata tree is closed"))
        self._watches.clear()
        if self._connection is None:
            return
        if self._is_connected:
            self._connection.end_session()
            await asyncio.wait([self._ended], timeout=CLOSE_TIMEOUT_S)
        if not self._ended.done():
            self._connection.abandon()
            await asyncio.wait([self._ended], timeout=ABANDON_TIMEOUT_S)

    # Operations

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        return cast("list[ResultT | TreeError]", await self._submit(operations, self._requests))

    async def _submit(self, operations: Sequence[Operation[object]], requests: ZooKeeperRequests) -> list[object]:
        if self._state in (_State.LOST, _State.CLOSED):
            raise SessionExpired("", f"the session of the metadata tree is {self._state.value}")
        if not operations:
            return []
        batch = _Batch(len(operations), self._loop.create_future())
        run: list[tuple[int, GetData]] = []
        for index, operation in enumerate(operations):
            try:
                if isinstance(operation, GetData) and operation.watcher is None:
                    check_path(operation.path)
                    run.append((index, operation))
                else:
                    self._queue_reads(run, requests, batch)
                    self._waiting.append(_Request(operation, requests, batch, index))
            except BadArguments as refused:
                batch.settle(index, refused)
        self._queue_reads(run, requests, batch)
        self._send_waiting()
        return await batch.future

    def _queue_reads(self, run: list[tuple[int, GetData]], requests: ZooKeeperRequests, batch: _Batch) -> None:
        """Queue reads that follow each other, and empty the list."""
        if self._reads_together and len(run) >= READS_TOGETHER_MIN:
            self._waiting.extend(_Request(group, requests, batch) for group in ReadTogether.of_run(run))
        else:
            self._waiting.extend(_Request(read, requests, batch, index) for index, read in run)
        run.clear()

    def _send_waiting(self) -> None:
        connection = self._connection
        while connection is not None and self._is_connected and self._waiting:
            if len(self._in_flight) >= self._in_flight_max:
                return
            request = self._waiting.popleft()
            if isinstance(request.operation, ReadTogether) and not self._reads_together:
                self._waiting.extendleft(reversed(request.alone()))
                continue
            self._in_flight.append(request)
            request.sent_s = self._loop.time()
            connection.send(request.wire, self._answered)

    def _answered(self, answer: object) -> None:
        """Handle the response to the oldest request in flight: ZooKeeper responds in the order of requests."""
        if not self._in_flight:  # all requests have failed already
            return
        request = self._in_flight.popleft()
        self.latency_ms.update(max(0, round((self._loop.time() - request.sent_s) * 1000)))
        if isinstance(request.operation, ReadTogether):
            self._answered_together(request, request.operation, answer)
            self._send_waiting()
            return
        result = request.requests.result(request.operation, answer)
        if request.batch is None:
            missed = self._watches.missed(request.operation, result)
            if missed is not None:
                self._fire(missed)
        else:
            self._watches.note(request.operation, result)
            request.batch.settle(request.index, result)
        self._send_waiting()

    def _answered_together(self, request: _Request, operation: ReadTogether, answer: object) -> None:
        if isinstance(answer, UnimplementedError):
            logger.info("ZooKeeper at %s is older than 3.6: nodes are read one by one", self._settings.hosts)
            self._reads_together = False
            self._waiting.appendleft(request)
            return
        result = request.requests.result(operation, answer)
        results = [result] * len(operation.indexes) if isinstance(result, TreeError) else cast("list[object]", result)
        if request.batch is not None:
            for index, each in zip(operation.indexes, results, strict=True):
                request.batch.settle(index, each)

    def _fire(self, event: WatchEvent) -> None:
        # One callback for each, so that an exception of one watcher (which the loop logs) does not stop the others.
        for watcher in self._watches.fire(event):
            self._loop.call_soon(watcher, event)

    def _fail_all(self, error: TreeError) -> None:
        for request in (*self._in_flight, *self._waiting):
            if request.batch is not None:
                request.batch.fail(error)
        self._in_flight.clear()
        self._waiting.clear()

    # Connections: implements ConnectionEvents

    def _begin_connection(self) -> None:
        self._began_s = self._loop.time()
        connection = self._make_connection(self._settings, self._session, self)
        connection.start()
        self._ended = self._loop.create_future()
        self._connection = connection

    def _connect(self) -> None:
        try:
            self._begin_connection()
        except (OSError, RuntimeError) as error:  # no free file descriptor, no thread: both pass
            logger.error("Cannot connect to ZooKeeper at %s: %s. Trying again", self._settings.hosts, error)
            self._connect_again()

    def _connect_again(self) -> None:
        wait_s = self._began_s + RETRY_S - self._loop.time()
        if wait_s > 0:
            self._reconnect = self._loop.call_later(wait_s, self._connect)
        else:
            self._connect()

    def connected(self, session: Session) -> None:
        if self._state is _State.CLOSED:
            return
        self._is_connected = True
        self.session_events["SyncConnects"] += 1
        if self._state is _State.OPENING:
            logger.info("ZooKeeper session 0x%x has begun", session.id & (1 << 64) - 1)
            self._state = _State.ALIVE
            self._session_id = session.id
            self._opened.set_result(None)
        else:
            logger.info("Reconnected to ZooKeeper, session 0x%x continues", session.id & (1 << 64) - 1)
            rereads = [_Request(operation, self._requests) for operation in self._watches.rereads(_ignore)]
            self._waiting.extendleft(reversed(rereads))
        self._session = session
        self._send_waiting()

    def watch_event(self, event: WatchEvent) -> None:
        self._fire(event._replace(path=self._requests.without_chroot(event.path)))

    def ended(self, end: End, session: Session | None) -> None:
        self._is_connected = False
        self._connection = None
        self._ended.set_result(None)
        if self._state is _State.CLOSED:
            return
        self.session_events[SESSION_EVENTS[end]] += 1
        # Only a lost connection leaves a session: Kafka makes a new client otherwise (ZooKeeperClient.reinitialize).
        self._session = session if end is End.DROPPED else None
        for request in reversed(self._in_flight):
            if request.batch is not None and not self._is_too_large(request):
                self._waiting.appendleft(request)
        self._in_flight.clear()
        if end is End.DROPPED:
            logger.warning("Lost the connection to ZooKeeper at %s, reconnecting", self._settings.hosts)
            if not self._waits_for_server and self._waiting:
                path = path_of(self._waiting[0].operation)
                self._fail_all(ConnectionLoss(path, f"ZooKeeper: the connection was lost, {path}"))
            self._connect_again()
        elif self._state is _State.OPENING:
            self._opened.set_result(end)
        else:
            logger.warning("ZooKeeper session 0x%x has ended: %s", self._session_id & (1 << 64) - 1, end.value)
            self._state = _State.LOST
            self._renewal = self._loop.create_task(self._renew_session(), name="zookeeper-session")

    @staticmethod
    def _is_too_large(request: _Request) -> bool:
        """Whether the server may have closed the connection because of the request's size. It fails then: sent again,
        it would block all other requests.
        """
        size = size_bytes(request.wire)
        if size <= REQUEST_BYTES_MAX:
            return False
        path = path_of(request.operation)
        message = (
            f"ZooKeeper closed the connection on a request of {size} bytes for {path}: "
            "its jute.maxbuffer may be too small"
        )
        if request.batch is not None:
            request.batch.fail(ConnectionLoss(path, message))
        return True

    async def _renew_session(self) -> None:
        self._watches.clear()
        self._fail_all(SessionExpired("", "the session with ZooKeeper expired"))
        for listener in self._listeners:
            (error,) = await asyncio.gather(listener.session_lost(), return_exceptions=True)
            if error is not None:
                logger.error("Error in %r while handling the lost session", listener, exc_info=error)
        self._state = _State.OPENING
        while True:
            self._opened = self._loop.create_future()
            self._connect()
            refused = await self._opened
            if refused is None:
                break
            logger.error("ZooKeeper refused a session: %s. Trying again", refused.value)
            await asyncio.sleep(RETRY_S)
        for listener in self._listeners:
            self._loop.call_soon(listener.session_started)  # one callback each: an exception does not stop the others


def _ignore(event: WatchEvent) -> None:
    """The watcher of a reread: the real watchers are in the table."""
