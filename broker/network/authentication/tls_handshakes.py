"""TLS handshakes of accepted sockets, paced so that many at once do not hold the event loop up.

A handshake takes 1 to 6 ms of the event loop, for the signature of the server. An accepted socket waits until the
client has sent something; then at most `HANDSHAKES_PER_TURN` begin in each turn of the event loop, so that other
connections are served in between. A client that sends nothing costs a socket, and holds no other client up.

A handshake under way takes 50 KB of memory with uvloop and 310 KB with asyncio. At most `HANDSHAKES_MAX` are under way;
one more aborts the oldest. A client that answers within a second finishes before 1,000 others have begun.

A client whose handshake fails gets the alert that says why. Its socket stays open for
`connection.failed.authentication.delay.ms`: if it were closed at once while data of the client is unread, the reset
would overtake the alert. At most `HANDSHAKES_MAX` such sockets stay open.

Kafka: SslTransportLayer.handshake, SslTransportLayer.handshakeFailure, Selector.DelayedAuthenticationFailureClose.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.broker.network.connection.garbage import describe_first_bytes
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.security.tls.alerts import alert_of
from odradek.controller.model.broker_info import SecurityProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
    from odradek.broker.network.connection.connection import Connection
    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

HANDSHAKES_PER_TURN: Final = 1

HANDSHAKES_MAX: Final = 1000
"""Handshakes under way of all listeners. Apache Kafka has no other limit here than `max.connections`."""

HANDSHAKE_TIMEOUT_MS: Final = 60_000
"""For the first bytes and the handshake. Apache Kafka has no other limit here than `connections.max.idle.ms`."""

TLS_RECORD: Final = b"\x16"
"""The first byte of a handshake."""

PEEKED_BYTES: Final = 8


class TlsHandshakes:
    """The handshakes of one broker."""

    def __init__(
        self,
        timer: SystemTimer,
        context_of: Callable[[str], ssl.SSLContext],
        counts: Mapping[str, AuthenticationCounts],
        failed_authentication_delay_ms: int,
    ) -> None:
        """`context_of`: the present context of a listener. `counts`: by listener, those with TLS among them."""
        self._timer = timer
        self._counts = counts
        self._delay_ms = failed_authentication_delay_ms
        self._context_of = context_of
        self._tasks: dict[Connection, asyncio.Task[None]] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Sockets with a client's first bytes, which wait for their turn."""
        self._under_way: dict[Connection, None] = {}
        """The oldest first."""
        self._is_releasing = False
        self._refused: dict[socket.socket, TimerTask] = {}
        """Sockets of clients whose handshake has failed, the oldest first, with the task that closes each."""

    async def accept(self, accepted: socket.socket, connection: Connection, max_idle_ms: int) -> None:
        """Make the handshake, after which the connection is connected, or abort the connection with the reason.

        Takes over the socket. `max_idle_ms` negative: no limit of its own.
        """
        task = asyncio.current_task()
        assert task is not None
        timeout_ms = HANDSHAKE_TIMEOUT_MS if max_idle_ms < 0 else min(max_idle_ms, HANDSHAKE_TIMEOUT_MS)
        limit = self._timer.schedule(timeout_ms, task.cancel)
        self._tasks[connection] = task
        leading = b""
        same: socket.socket | None = None
        try:
            leading = await _first_bytes(accepted)
            await self._turn()
            self._begin(connection)
            same = accepted.dup()  # the loop closes the other descriptor as soon as the handshake fails
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=self._context_of(connection.listener_name)
            )
            self._count_success(connection)
        except asyncio.CancelledError:  # by the limit, or because the connection is aborted already
            accepted.close()
            connection.abort(CloseReason.HANDSHAKE_FAILED, f"it takes longer than {timeout_ms} ms")
        except OSError as error:
            accepted.close()
            if isinstance(error, ssl.SSLError):
                if leading[:1] == TLS_RECORD:
                    self._counts[connection.listener_name].failed_authentication += 1
                if same is not None and (alert := alert_of(error)):
                    self._refuse(same, alert)
                    same = None
                connection.abort(CloseReason.HANDSHAKE_FAILED, _describe(error, leading))
            else:
                connection.abort(CloseReason.CONNECTION_FAILED, str(error))
            # The frames of the loop refer to the future that holds the error: a cycle with 256 KB of buffers.
            error.__traceback__ = None
        finally:
            limit.cancel()
            del self._tasks[connection]
            self._under_way.pop(connection, None)
            if same is not None:
                same.close()

    def close(self) -> None:
        """Close the sockets of clients whose handshake has failed."""
        while self._refused:
            self._close_refused(next(iter(self._refused)))

    def _count_success(self, connection: Connection) -> None:
        """Count a connection that TLS authenticates. No session of TLS alone can be renewed."""
        if connection.security_protocol is SecurityProtocol.SSL:
            counts = self._counts[connection.listener_name]
            counts.successful_authentication += 1
            counts.successful_authentication_no_reauth += 1

    def _refuse(self, client: socket.socket, alert: bytes) -> None:
        """Send the alert, and close the socket later."""
        with suppress(OSError):  # the client is gone, or takes nothing
            client.send(alert)
        if len(self._refused) >= HANDSHAKES_MAX:
            self._close_refused(next(iter(self._refused)))
        self._refused[client] = self._timer.schedule(self._delay_ms, lambda: self._close_refused(client))

    def _close_refused(self, client: socket.socket) -> None:
        self._refused.pop(client).cancel()
        client.close()

    def _begin(self, connection: Connection) -> None:
        if len(self._under_way) >= HANDSHAKES_MAX:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            oldest.abort(CloseReason.HANDSHAKE_FAILED, f"{HANDSHAKES_MAX} others are under way")
        self._under_way[connection] = None

    def cancel(self, connection: Connection) -> None:
        """End the handshake of a connection that is aborted, if there is one."""
        task = self._tasks.get(connection)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._is_releasing:
            self._is_releasing = True
            loop.call_soon(self._release)
        await turn

    def _release(self) -> None:
        released = 0
        while self._waiting and released < HANDSHAKES_PER_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else the client's time is over
                turn.set_result(None)
                released += 1
        self._is_releasing = bool(self._waiting)
        if self._is_releasing:
            asyncio.get_running_loop().call_soon(self._release)


async def _first_bytes(accepted: socket.socket) -> bytes:
    """Wait for the client's first bytes and return them; they stay in the socket. Raises: OSError."""
    loop = asyncio.get_running_loop()
    fd = accepted.fileno()
    readable: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        loop.remove_reader(fd)
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(fd, ready)
    try:
        await readable
    finally:
        loop.remove_reader(fd)
    leading = accepted.recv(PEEKED_BYTES, socket.MSG_PEEK)
    if not leading:
        raise ConnectionResetError("the client closed the connection before the TLS handshake")
    return leading


def _describe(error: ssl.SSLError, leading: bytes) -> str:
    if leading[:1] != TLS_RECORD:
        return f"the client does not speak TLS{describe_first_bytes(leading)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
