"""The broker's sockets: listens, accepts, limits, and owns the connections.

Opening and accepting are separate steps. The ports are bound before other parts start, so that a port in use ends the
start early. Clients are accepted when the broker can serve them; until then they wait in the kernel's queue.

In Apache Kafka `queued.max.requests` limits the queue between network threads and request handlers. Here a request is
handled where it is read, and `connection.py` limits the waiting requests of a connection. So the setting limits those
that outlive their connections: a listener with so many accepts no one (`AbandonedRequests`). `memory_pool.py` limits
the bytes of all that are being received or handled.

Kafka: SocketServer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.config.endpoint import EndPoint
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.authentication.principals import Principals
from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.listeners.acceptor import Acceptor
from odradek.broker.network.listeners.connection_quotas import ConnectionPriorities, ConnectionQuotas
from odradek.broker.network.listeners.rate_limited_log import RateLimitedLog
from odradek.broker.network.listeners.throttled_sockets import ThrottledSockets
from odradek.broker.network.requests.large_requests import AbandonedRequests
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.network.sockets.direct_socket import DirectSocket, DuplicatedSocket
from odradek.broker.network.sockets.listening_socket import (
    USE_OS_DEFAULT,
    OpenListening,
    bound_port,
    open_listening_socket,
)
from odradek.controller.model.broker_info import SASL_PROTOCOLS
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.descriptors import DescriptorLimits
from odradek.timer.task import TimerTask

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.meters.connection_meters import ConnectionMeters
    from odradek.broker.network.authentication.authentication import Authentications
    from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
    from odradek.broker.network.authentication.tls_handshakes import TlsHandshakes
    from odradek.broker.network.responses.response_sender import SentBytes
    from odradek.broker.security.tls.ssl_factory import SslFactory
    from odradek.broker.security.tls.tls_contexts import TlsContexts
    from odradek.controller.model.broker_info import SecurityProtocol
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

RETRY_ACCEPT_MS: Final = 1000
"""After running out of descriptors or memory."""

_Opened: TypeAlias = "tuple[socket.socket, SslFactory | None]"

_EXPECTED: Final = frozenset(
    {
        CloseReason.CLIENT_CLOSED,
        CloseReason.CONNECTION_FAILED,
        CloseReason.AUTHENTICATION_FAILED,  # logged with its reason by `authentication.py`
        CloseReason.SHUTDOWN,
    }
)


class SocketServer:
    """All listeners of a broker and the connections they accepted."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: SystemTimer,
        io_pool: IoPool,
        dispatch: Callable[[Connection, memoryview, int], None],
        tls: Callable[[], TlsContexts] | None = None,
        listen: OpenListening | None = None,
    ) -> None:
        """`tls` gives the contexts of listeners with TLS; without it there are none. `listen` None: sockets as the
        configuration says.
        """
        self.fd_limit = DescriptorLimits.of_process().connections
        """Descriptors from this number on are reserved for the broker itself."""
        self.clock = clock
        self.io_pool = io_pool
        self.frame_buffers = FrameBuffers()
        pool_bytes = config.queued_max_request_bytes
        self.memory_pool = MemoryPool(pool_bytes, self.call_soon) if pool_bytes > 0 else None
        self.sent_bytes: SentBytes | None = None
        """Counts what connections send; None while metrics are off."""
        self.connection_meters: ConnectionMeters | None = None
        """None while metrics are off."""
        self.dispatch = dispatch
        self.make_authentications: Callable[[], Authentications] | None = None
        """Called for the first SASL listener; None: there can be none."""
        self._authentications: Authentications | None = None
        self.end_points: tuple[EndPoint, ...] = ()
        """The listeners with their bound ports, after `open`."""
        self.connections: dict[Connection, str] = {}
        """Connection -> the address for which it is counted."""
        self.closed_by_reason: Counter[CloseReason] = Counter()
        self.authentication_counts: dict[str, AuthenticationCounts] = {}
        """By the name of the listener, for those with TLS or SASL."""
        self._config = config
        self._timer = timer
        self._quotas = ConnectionQuotas(config, clock, io_pool)
        self.priorities: ConnectionPriorities[Connection] = ConnectionPriorities()
        self.abandoned = AbandonedRequests(self._resume_acceptors)
        self._throttled = ThrottledSockets(timer, self.fd_limit)
        self._log = RateLimitedLog(logger, clock)
        self._acceptors: dict[str, Acceptor] = {}
        """Name of a listener -> its acceptor, from `open` on."""
        self._protocols: dict[str, SecurityProtocol] = {}
        """Name of a listener -> its protocol, also of listeners that are gone."""
        self._loop_reads_into_blocks = False
        """Whether the event loop makes a block for each read also without TLS, as asyncio's own loop does
        (`frames/chunk_receiver.py`). Known from `open` on."""
        self._is_accepting = False
        self._is_stopped = False
        self._tls = tls
        self._listen = listen
        self._principals = Principals(config, lambda: self._contexts)
        self._handshakes: TlsHandshakes | None = None
        """Made for the first listener with TLS."""
        self._connecting: dict[asyncio.Task[None], Connection] = {}
        self._dropped: set[Connection] = set()
        """Connections that are being closed together."""
        self._all_dropped: asyncio.Future[None] | None = None

    async def open(self) -> tuple[EndPoint, ...]:
        """Bind and listen on every listener, or on none. Raises: StartupError."""
        self._loop_reads_into_blocks = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
        await self._quotas.start()
        self._load_authentications()
        self._principals.load_listeners()
        try:
            for end_point in self._config.listeners.bound:
                if end_point.security_protocol.has_tls:
                    self._contexts.server_context(end_point.listener_name)
                self._add_listener(end_point, self._open_listening(end_point))
        except BaseException:
            self.stop_accepting()
            self.end_points = ()
            raise
        return self.end_points

    def _load_authentications(self) -> None:
        """Prepare the SASL listeners. Raises: StartupError."""
        protocols = {point.security_protocol for point in self._config.listeners.bound}
        if self._authentications is None and self.make_authentications is not None and protocols & SASL_PROTOCOLS:
            self._authentications = self.make_authentications()
        if self._authentications is not None:
            self._authentications.load_listeners()

    def start_accepting(self) -> None:
        self._is_accepting = True
        for acceptor in self._acceptors.values():
            acceptor.resume()

    def stop_accepting(self) -> None:
        """Close the listening sockets for good; connections stay."""
        self._is_stopped = True
        for acceptor in self._acceptors.values():
            acceptor.close()
        self._acceptors.clear()
        self._throttled.close()

    async def update_listeners(self) -> None:
        """Close the listeners that `listeners` no longer names, with their connections; open those that are new.

        A listener whose address has changed under the same name stays as it is, as in Apache Kafka. Raises:
        StartupError for a listener that cannot be opened; those before it are.

        Kafka: SocketServer.removeListeners, SocketServer.addListeners.
        """
        wanted = {end_point.listener_name: end_point for end_point in self._config.listeners.bound}
        removed = self._acceptors.keys() - wanted.keys()
        if removed:
            logger.info("Removing data-plane listeners for endpoints %s", ", ".join(sorted(removed)))
            await self._remove_listeners(removed)
        if self._is_stopped:
            return
        self._load_authentications()
        self._principals.load_listeners()
        for name, end_point in wanted.items():
            if name in self._acceptors:
                continue
            logger.info("Adding data-plane listeners for endpoints %s", end_point)
            opened, factory = await self._open_in_pool(end_point)
            if self._is_stopped:
                opened.close()
                return
            if factory is not None:
                self._contexts.add(name, factory)
            self._quotas.add_listener(name)
            self._add_listener(end_point, opened)
            if self._is_accepting:
                self._acceptors[name].resume()

    def limits_changed(self) -> None:
        """Accept waiting clients, or close the connections beyond `max.connections`; resolve changed overrides."""
        self._quotas.overrides_changed()
        self._close_excess()
        self._resume_acceptors()

    def accept_rates(self) -> tuple[float, dict[str, float]]:
        """The connections per second that were accepted: of the broker as its limit counts them, and by listener."""
        return self._quotas.accept_rates()

    def update_ip_connection_rate_quota(self, ip: str | None, rate: float | None) -> None:
        """Set `connection_creation_rate` of an address or host; `ip` None: the default; `rate` None: no quota."""
        self._quotas.update_ip_connection_rate_quota(ip, rate)

    async def close(self) -> None:
        """Stop accepting and drop all connections."""
        self.stop_accepting()
        await self._drop(lambda connection: True)
        if self._handshakes is not None:
            self._handshakes.close()
        self._principals.close()
        if self._authentications is not None:
            self._authentications.close()

    def _open_listening(self, end_point: EndPoint) -> socket.socket:
        return (self._listen or open_listening_socket)(
            end_point,
            receive_buffer_bytes=self._config.socket_receive_buffer_bytes,
            backlog=self._config.socket_listen_backlog_size,
        )

    async def _open_in_pool(self, end_point: EndPoint) -> tuple[socket.socket, SslFactory | None]:
        """Open a socket in a thread: the name of the host may have to be looked up, stores have to be read.

        Raises: StartupError.
        """
        opened: asyncio.Future[_Opened | StartupError] = asyncio.get_running_loop().create_future()
        contexts = self._contexts if end_point.security_protocol.has_tls else None

        def work() -> _Opened | StartupError:
            try:
                factory = None if contexts is None else contexts.load(end_point.listener_name)
                return self._open_listening(end_point), factory
            except StartupError as error:
                return error
            except ConfigError as error:
                return StartupError(str(error))

        def done(result: _Opened | StartupError | OSError) -> None:
            assert not isinstance(result, OSError), "becomes a StartupError"
            if not opened.done():
                opened.set_result(result)
            elif not isinstance(result, StartupError):
                result[0].close()  # the broker stops

        self.io_pool.submit(work, done)
        result = await opened
        if isinstance(result, StartupError):
            raise result
        return result

    @property
    def _contexts(self) -> TlsContexts:
        assert self._tls is not None, "a broker with TLS gives its contexts"
        return self._tls()

    def _add_listener(self, end_point: EndPoint, listening: socket.socket) -> None:
        name = end_point.listener_name
        self._acceptors[name] = Acceptor(self, self._timer, listening, name)
        self._protocols[name] = end_point.security_protocol
        if end_point.security_protocol.has_tls or end_point.security_protocol in SASL_PROTOCOLS:
            from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts

            self.authentication_counts[name] = AuthenticationCounts()
        if self._handshakes is None and end_point.security_protocol.has_tls:
            from odradek.broker.network.authentication.tls_handshakes import TlsHandshakes

            self._handshakes = TlsHandshakes(
                self._timer,
                lambda listener: self._contexts.server_context(listener),
                self.authentication_counts,
                self._config.connection_failed_authentication_delay_ms,
            )
        bound = end_point._replace(port=bound_port(listening))
        self.end_points = (*self.end_points, bound)
        logger.info("Awaiting socket connections on %s:%d.", bound.host or "0.0.0.0", bound.port)

    async def _remove_listeners(self, names: Set[str]) -> None:
        for name in names:
            self._acceptors.pop(name).close()
        self.end_points = tuple(point for point in self.end_points if point.listener_name not in names)
        await self._drop(lambda connection: connection.listener_name in names)
        for name in names:
            self._quotas.remove_listener(name)
            self.authentication_counts.pop(name, None)
            if self.connection_meters is not None:
                self.connection_meters.listeners.pop(name, None)
            if self._protocols[name].has_tls:
                self._contexts.forget(name)

    async def _drop(self, is_dropped: Callable[[Connection], bool]) -> None:
        """Close connections whose listening socket is closed."""
        connecting = {task for task, connection in self._connecting.items() if is_dropped(connection)}
        for task in connecting:
            if self._connecting[task].security_protocol.has_tls:  # a handshake may take a minute
                self._connecting[task].abort(CloseReason.SHUTDOWN)
        if connecting:  # until then a connection has no transport that could be aborted
            await asyncio.wait(connecting)
        self._dropped.update(filter(is_dropped, self.connections))
        for connection in list(self._dropped):
            connection.abort(CloseReason.SHUTDOWN)
        if self._dropped:  # the loop calls connection_lost in its next turns
            self._all_dropped = asyncio.get_running_loop().create_future()
            await self._all_dropped

    # -- for the acceptors

    def may_accept(self, listener_name: str) -> bool:
        if self.abandoned.of(listener_name) >= self._config.queued_max_requests:
            return False
        return self._quotas.may_accept(listener_name)

    def record_connection(self, listener_name: str) -> int:
        """Count an accepted socket. Returns the time in ms for which the listener has to wait before `accepted`."""
        throttle_ms = self._quotas.record_connection(listener_name)
        if throttle_ms and self.connection_meters is not None:
            self.connection_meters.listener_throttled(listener_name, throttle_ms)
        return throttle_ms

    def accepted(self, accepted: socket.socket, listener_name: str, host: str) -> None:
        """Make a connection of an accepted socket, unless its address is at one of its limits."""
        throttle_ms = self._quotas.record_address(host, listener_name)
        if throttle_ms:
            self.closed_by_reason[CloseReason.THROTTLED] += 1
            if self.connection_meters is not None:
                self.connection_meters.address_throttled(listener_name, throttle_ms)
            logger.debug("Delaying closing of connection from /%s for %d ms", host, throttle_ms)
            self._throttled.add(accepted, throttle_ms)
            return
        if not self._quotas.acquire(host, listener_name):
            accepted.close()
            self.closed_by_reason[CloseReason.TOO_MANY_CONNECTIONS] += 1
            self._log.warning(
                CloseReason.TOO_MANY_CONNECTIONS,
                "Rejected connection from /%s, address already has the configured maximum of %d connections.",
                host,
                self._quotas.limit_of(host),
            )
            return
        self._close_excess()
        protocol = self._protocols[listener_name]
        connection = Connection(self, listener_name, self._config.socket_request_max_bytes, protocol)
        if protocol in SASL_PROTOCOLS:
            assert self._authentications is not None, "made before the listener was opened"
            self._authentications.begin(
                connection,
                partial(self._principals.principal_of_user, connection),
                self.authentication_counts[listener_name],
            )
        connection.client_host = host
        self.connections[connection] = host
        if self.connection_meters is not None:
            self.connection_meters.listeners[listener_name].accepted += 1
        task = asyncio.get_running_loop().create_task(self._connect(accepted, connection))
        self._connecting[task] = connection
        task.add_done_callback(self._connecting.pop)

    def exhausted(self, acceptor: Acceptor, error: OSError) -> None:
        self._log.warning(error.errno, "Cannot accept connections: %s", error.strerror)
        self._timer.schedule(RETRY_ACCEPT_MS, acceptor.resume)

    # -- for the connections

    def call_soon(self, callback: Callable[[], None]) -> object:
        return asyncio.get_running_loop().call_soon(callback)

    def open_direct(self, transport: asyncio.Transport) -> DirectSocket:
        return DuplicatedSocket(asyncio.get_running_loop(), transport, self.fd_limit)

    def watch_idle(self, connection: Connection) -> TimerTask | None:
        """Close the connection when it has been idle for `connections.max.idle.ms`; negative means never."""
        max_idle_ms = self._config.connections_max_idle_ms
        if max_idle_ms < 0:
            return None
        task = _IdleCheck(connection, self._timer, max_idle_ms)
        self._timer.add(task)
        return task

    def receiver_of(self, connection: Connection) -> asyncio.BaseProtocol:
        if not (self._loop_reads_into_blocks or connection.security_protocol.has_tls):
            return connection
        from odradek.broker.network.frames.chunk_receiver import ChunkReceiver  # usually not needed

        return ChunkReceiver(connection, self.frame_buffers.shared)

    def identify(self, connection: Connection) -> None:
        self._principals.identify(connection)

    def connection_closed(self, connection: Connection, reason: CloseReason, detail: str) -> None:
        self.closed_by_reason[reason] += 1
        self.priorities.closed(connection)
        if self._handshakes is not None:
            self._handshakes.cancel(connection)
        if reason not in _EXPECTED:
            text = f"{reason.value}: {detail}" if detail else reason.value
            if reason is CloseReason.HANDSHAKE_FAILED:
                kind = (connection.client_host, text)  # what is left out is the same line as that before
                self._log.warning(kind, "Failed authentication with /%s (%s)", *kind)
            elif reason is CloseReason.IDLE:
                logger.debug("Closed connection from %s:%d: %s", connection.client_host, connection.client_port, text)
            else:
                self._log.warning(
                    reason, "Closed connection from %s:%d: %s", connection.client_host, connection.client_port, text
                )
        host = self.connections.pop(connection, None)
        if host is not None:
            self._quotas.release(host, connection.listener_name)
            self._resume_acceptors()
        self._dropped.discard(connection)
        if self._all_dropped is not None and not self._dropped and not self._all_dropped.done():
            self._all_dropped.set_result(None)

    def _resume_acceptors(self) -> None:
        """Accept waiting clients for which there is room."""
        for acceptor in self._acceptors.values():
            acceptor.resume_if_limited()

    def _close_excess(self) -> None:
        """Close connections of clients beyond `max.connections`."""
        excess = self._quotas.excess - len(self.priorities.closing)
        for _ in range(min(excess, self._quotas.unprotected)):
            connection = self.priorities.lowest(
                self.connections, lambda found: self._quotas.is_protected(found.listener_name)
            )
            if connection is None:
                return
            connection.abort(CloseReason.TOO_MANY_CONNECTIONS, "max.connections is exceeded, and others are used more")

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        if connection not in self.connections:  # aborted meanwhile
            accepted.close()
            return
        try:
            _prepare(accepted, self._config.socket_send_buffer_bytes)
            if self._handshakes is not None and connection.security_protocol.has_tls:
                await self._handshakes.accept(accepted, connection, self._config.connections_max_idle_ms)
            else:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted)
        except OSError as error:  # the client has closed the connection already
            accepted.close()
            self.connection_closed(connection, CloseReason.CONNECTION_FAILED, str(error))


def _prepare(accepted: socket.socket, send_buffer_bytes: int) -> None:
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes != USE_OS_DEFAULT:
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)


class _IdleCheck(TimerTask):
    """Closes a connection that is idle for too long, and waits again after each of its requests.

    A function that adds its own task again would be a cycle: see `Connection._release`.
    """

    __slots__ = ("_connection", "_max_idle_ms", "_timer")

    def __init__(self, connection: Connection, timer: SystemTimer, max_idle_ms: int) -> None:
        super().__init__(max_idle_ms)
        self._connection = connection
        self._max_idle_ms = max_idle_ms
        self._timer = timer

    def run(self) -> None:
        again_ms = self._connection.close_if_idle(self._max_idle_ms)
        if again_ms:
            self.delay_ms = again_ms
            self._timer.add(self)
