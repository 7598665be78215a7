"""One connection to a ZooKeeper: a kazoo client that is stopped when its connection ends.

kazoo runs in a thread of its own. By itself it connects again when the connection is lost, sends the requests made
meanwhile, and opens a new session when the old one has expired. Here `ZooKeeperTree` decides these steps, so the client
is stopped at the first loss, and the tree opens another connection with the same session. After `ended` the connection
calls nothing any more, and its unanswered requests get no response.

kazoo's callbacks only pass responses, watch events and the end of the connection to the loop, in the order in which
they arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import select
import socket
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import CloseInstance, Exists
from kazoo.protocol.states import Callback, EventType, KazooState, KeeperState, WatchedEvent

from odradek.controller.tree.metadata_tree import WatchEvent, WatchEventType
from odradek.controller.tree.zookeeper_tls import BadTls, tls_context

if TYPE_CHECKING:
    import threading

    from odradek.controller.tree.zookeeper_settings import ZooKeeperSasl, ZooKeeperSettings, ZooKeeperTls

RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
"""Retries without end until a server answers; delays in seconds. ZooKeeper's client also waits up to a second."""

_WATCH_EVENTS: Final = {
    EventType.CREATED: WatchEventType.CREATED,
    EventType.DELETED: WatchEventType.DELETED,
    EventType.CHANGED: WatchEventType.CHANGED,
    EventType.CHILD: WatchEventType.CHILDREN,
}

_UNANSWERED: Final = (exceptions.ConnectionLoss, exceptions.SessionExpiredError, exceptions.AuthFailedError)
"""kazoo's errors for requests without a response. They are ignored: `ended` covers all of these requests."""

logger = logging.getLogger("kazoo.connection")
# Suppresses kazoo's message when it is stopped while it connects, and its repetition of state changes.
logger.addFilter(lambda record: not str(record.msg).startswith(("Failed connecting to Zookeeper", "Transition to")))


class Session(NamedTuple):
    """The data needed to continue a session over another connection."""

    id: int
    password: bytes
    last_zxid: int


class End(Enum):
    """Why a connection ended."""

    DROPPED = "dropped"
    EXPIRED = "expired"
    AUTH_FAILED = "authentication failed"


class ConnectionEvents(Protocol):
    """Callbacks of a connection, called on the loop."""

    def connected(self, session: Session) -> None:
        """The server has accepted the requested session, or a new one."""

    def watch_event(self, event: WatchEvent) -> None:
        """A watch has fired; the path includes the chroot."""

    def ended(self, end: End, session: Session | None) -> None:
        """The connection has ended; unanswered requests get no response. Called once, as the last callback."""


class Connection(Protocol):
    """A connection, as `ZooKeeperTree` uses it."""

    def start(self) -> None:
        """Raises OSError or RuntimeError if there is no file descriptor or no thread for it."""

    def send(self, request: object, on_answer: Callable[[object], None]) -> None:
        """Send a request. `on_answer` gets the response or the server's error on the loop, in the order of requests."""

    def end_session(self) -> None:
        """Close the session and the connection."""

    def abandon(self) -> None:
        """Stop at once, also while connecting; the session is not closed and times out on the server."""


class KazooConnection:
    """See the module. Continues `session`, or begins a new one for None. Implements Connection."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        session: Session | None,
        events: ConnectionEvents,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events = events
        self._end = End.DROPPED
        self._session = session
        host_count = len(settings.hosts.split(","))
        self._handler = _LoopHandler(self._watch_event, self._work_is_over, host_count, settings.tls)
        self._client = KazooClient(
            settings.hosts,
            timeout=settings.session_timeout_ms / 1000,
            client_id=None if session is None else (session.id, session.password),
            handler=self._handler,
            connection_retry=RECONNECT,
            sasl_options=_sasl_options(settings.sasl),
            logger=logger,
        )
        kazoo, handler = self._client._connection, _Handler if settings.sasl is None else _SaslHandler
        self._client._connection = handler(self._client, kazoo.retry_sleeper, logger, kazoo.sasl_options)
        if session is not None:
            self._client.last_zxid = session.last_zxid
        # kazoo's initial state is LOST, and it would not report that the session is lost. SUSPENDED makes it report.
        self._client.state = KazooState.SUSPENDED
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        try:
            self._client.start_async()
        except RuntimeError:
            self._client.close()
            raise

    def send(self, request: object, on_answer: Callable[[object], None]) -> None:
        # kazoo's own methods hide the stat of some responses, and do not create nodes with null data.
        self._client._call(request, _Answer(self._hop, on_answer))

    def end_session(self) -> None:
        self.send(CloseInstance, lambda _: None)

    def abandon(self) -> None:
        self._client._stopped.set()
        self._handler.disconnect()

    # Called in kazoo's thread

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            session_id, password = self._client.client_id
            session = self._session = Session(session_id, password, self._client.last_zxid)
            # The server has accepted the session, but not yet our credentials: its first response shows that.
            self.send(Exists("/", None), lambda _: self._events.connected(session))
            return
        if self._client.client_state == KeeperState.EXPIRED_SESSION:
            self._end = End.EXPIRED
        elif self._client.client_state == KeeperState.AUTH_FAILED:
            self._end = End.AUTH_FAILED
        if self._session is not None:
            self._session = self._session._replace(last_zxid=max(self._session.last_zxid, self._client.last_zxid))
        self._client._stopped.set()

    def _watch_event(self, event: WatchedEvent) -> None:
        kind = _WATCH_EVENTS.get(event.type)  # None: the connection was lost
        if kind is not None:
            self._hop(self._events.watch_event, WatchEvent(kind, event.path))

    def _work_is_over(self) -> None:
        self._client.close()
        self._hop(self._ended)

    def _hop(self, function: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no callback is needed
            self._loop.call_soon_threadsafe(function, *arguments)

    # Called on the loop

    def _ended(self) -> None:
        self._events.ended(self._end, self._session)


def _sasl_options(sasl: ZooKeeperSasl | None) -> dict[str, object] | None:
    """kazoo adds to them, so that each connection gets its own."""
    if sasl is None or isinstance(sasl, dict):
        return None if sasl is None else dict(sasl)
    from odradek.controller.tree.zookeeper_sasl import exchange_options

    return exchange_options(sasl)


class _Handler(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, which passes over each name that cannot be resolved.

    kazoo does so for a name that is unknown. Python refuses an empty label (`zk..example`) and one of more than 63
    characters with a UnicodeError, which ends kazoo's thread.

    ZooKeeper: StaticHostProvider.resolve.
    """

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """The addresses of all servers that have some, with their names."""
        found: list[tuple[str, str, int]] = []
        for host, port in self.client.hosts:
            try:
                addresses = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
            except (socket.gaierror, UnicodeError) as error:
                logger.warning("Cannot resolve %s: %s", host, error)
                continue
            found += [(host, str(address[0]), int(address[1])) for *_, address in addresses]
        if self.client.randomize_hosts:
            random.shuffle(found)
        return found


class _SaslHandler(_Handler):
    """kazoo's connection, with ZooKeeper's distinction of a lost connection and refused credentials.

    kazoo takes a connection that is lost during the exchange for refused credentials, and some refusals for bugs.

    ZooKeeper: ZooKeeperSaslClient.respondToServer, ClientCnxn.SendThread.
    """

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, timeout)
        except (exceptions.ZookeeperError, exceptions.SASLException) as error:
            if isinstance(error.__context__, exceptions.ConnectionDropped):
                raise error.__context__ from None
            raise exceptions.AuthFailedError(str(error) or type(error).__name__) from error


class _Answer:
    """Replaces kazoo's AsyncResult: passes the response to the loop."""

    __slots__ = ("_hop", "_on_answer")

    def __init__(self, hop: Callable[..., None], on_answer: Callable[[object], None]) -> None:
        self._hop = hop
        self._on_answer = on_answer

    def set(self, value: object = None) -> None:
        self._hop(self._on_answer, value)

    def set_exception(self, error: BaseException) -> None:
        if not isinstance(error, _UNANSWERED):
            self._hop(self._on_answer, error)


class _LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler without its callback threads: the connection's thread passes callbacks to the loop in order."""

    def __init__(
        self,
        on_watch_event: Callable[[WatchedEvent], None],
        on_end: Callable[[], None],
        host_count: int,
        tls: ZooKeeperTls | None,
    ) -> None:
        super().__init__()
        self._on_watch_event = on_watch_event
        self._on_end = on_end
        self._host_count = host_count
        self._tls = tls
        self._socket: socket.socket | None = None
        self._is_disconnected = False

    def start(self) -> None:
        """There are no threads to start."""

    def stop(self) -> None:
        """There are no threads to stop."""

    def spawn(self, func: Callable[..., None], *args: object, **kwargs: object) -> threading.Thread:
        def work() -> None:
            try:
                func(*args, **kwargs)
            finally:
                self._on_end()

        thread: threading.Thread = super().spawn(work)
        return thread

    def dispatch_callback(self, callback: Callback) -> None:
        """Called for each watch that fires."""
        self._on_watch_event(*callback.args)

    def select(
        self, readers: list[socket.socket], writers: list[socket.socket], _: object, timeout_s: float | None = None
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """Called for every request and response; kazoo's own creates an epoll each time, a third of the cost."""
        poll = select.poll()
        for end in readers:
            poll.register(end, select.POLLIN)
        for end in writers:
            poll.register(end, select.POLLOUT)
        ready = {number for number, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
        return [end for end in readers if end.fileno() in ready], [end for end in writers if end.fileno() in ready], []

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> socket.socket:
        """Connect with a part of the timeout, so that all servers can be tried within the session timeout."""
        try:
            context = None if self._tls is None else tls_context(self._tls)
        except BadTls as error:  # perhaps the files are being replaced
            raise exceptions.ConnectionDropped(str(error)) from error
        connection = socket.create_connection(address, timeout / self._host_count)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connection = context.wrap_socket(connection, server_hostname=hostname)
            self._socket = connection
            if self._is_disconnected:
                raise ConnectionAbortedError(f"stopped while connecting to {hostname}")
        except OSError:
            connection.close()
            raise
        return connection

    def disconnect(self) -> None:
        """Wake kazoo's thread by shutting down its socket, now or as soon as it has one. Called on the loop."""
        self._is_disconnected = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the connection has ended already
                self._socket.shutdown(socket.SHUT_RDWR)
