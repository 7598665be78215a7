"""The clients of SASL listeners: each frame of a connection goes to its authenticator first.

While a client authenticates, its connection has one request at a time, as later: the frame of a token counts as a
request in flight until it is answered. When it is refused, the answer and the end of the connection wait for
`connection.failed.authentication.delay.ms`; the connection counts until then, and nothing more is read from it.

The frames of an authentication are small, and take no memory of the pool of `queued.max.request.bytes`: clients that
may be nobody cannot empty it.

Kafka: KafkaChannel.prepare, Selector.pollSelectionKeys, Selector.DelayedAuthenticationFailureClose,
Processor.processCompletedReceives.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.security.sasl.mechanisms import enabled_mechanisms
from odradek.broker.security.sasl.ports import SaslError
from odradek.broker.security.sasl.server_authenticator import (
    AuthenticationFailed,
    InvalidPacket,
    SaslServerAuthenticator,
)
from odradek.controller.model.broker_info import SASL_PROTOCOLS
from odradek.protocol.api import ApiKey
from odradek.protocol.framing import frame
from odradek.protocol.headers import RequestHeader
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
    from odradek.broker.network.connection.connection import Connection
    from odradek.broker.security.sasl.mechanisms import SaslParts
    from odradek.broker.security.sasl.server_authenticator import EnabledMechanism
    from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

_SASL_HANDSHAKE_KEY: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
_LOGGED_CHARACTERS: Final = 300
"""A client chooses the name of its mechanism, which is in the reason."""


class _Listener(NamedTuple):
    """What a SASL listener has from its configuration, until it is closed."""

    mechanisms: Mapping[str, EnabledMechanism]
    max_receive_bytes: int
    """The largest frame of an authentication."""


class Authentications:
    """The SASL listeners of a broker."""

    def __init__(
        self,
        config: BrokerConfig,
        parts: SaslParts,
        timer: SystemTimer,
        in_background: Callable[[Coroutine[object, object, None]], None],
        answer_versions: Callable[[ApiVersionsRequest, int, Connection], ApiVersionsResponse],
        answer_unsupported_versions: Callable[[], ApiVersionsResponse],
    ) -> None:
        self.config = config
        self.clock: Clock = parts.clock
        self.timer = timer
        self.in_background = in_background
        self._parts = parts
        self._answer_versions = answer_versions
        self._answer_unsupported_versions = answer_unsupported_versions
        self._listeners: dict[str, _Listener] = {}

    def load_listeners(self) -> None:
        """Load the mechanisms of new SASL listeners, and forget listeners that are gone. Raises: StartupError."""
        listeners = {}
        for end_point in self.config.listeners.bound:
            name = end_point.listener_name
            if end_point.security_protocol in SASL_PROTOCOLS:
                try:
                    listeners[name] = self._listeners.get(name) or self._load(name)
                except ConfigError as error:
                    raise StartupError(f"Listener {name}: {error}") from error
        for gone in self._listeners.keys() - listeners.keys():
            _close(self._listeners[gone].mechanisms)
        self._listeners = listeners

    def _load(self, name: str) -> _Listener:
        """Raises: ConfigError."""
        max_receive_bytes = cast("int", self.config.listener_value(name, "sasl.server.max.receive.size", ""))
        return _Listener(enabled_mechanisms(self.config, name, self._parts), max_receive_bytes)

    def close(self) -> None:
        """No connection is left."""
        for listener in self._listeners.values():
            _close(listener.mechanisms)
        self._listeners = {}

    def begin(
        self, connection: Connection, principal_of: Callable[[str, str], str], counts: AuthenticationCounts
    ) -> None:
        """An accepted connection must authenticate. `principal_of`: as of `SaslServerAuthenticator`."""
        listener = self._listeners[connection.listener_name]
        authenticator = SaslServerAuthenticator(
            listener.mechanisms,
            self.clock,
            partial(_with_connection, self._answer_versions, connection),
            self._answer_unsupported_versions,
            principal_of,
            self.config.apis,
        )
        connection.is_authenticated = False
        connection.allow_frames(listener.max_receive_bytes, takes_memory=False)
        connection.authentication = Authentication(self, connection, authenticator, counts, listener.max_receive_bytes)


def _close(mechanisms: Mapping[str, EnabledMechanism]) -> None:
    for name, mechanism in mechanisms.items():
        for close in mechanism.when_closed:
            try:
                close()
            except Exception:
                logger.exception("Cannot close the callback handler of %s", name)


def _with_connection(
    answer: Callable[[ApiVersionsRequest, int, Connection], ApiVersionsResponse],
    connection: Connection,
    request: ApiVersionsRequest,
    version: int,
) -> ApiVersionsResponse:
    return answer(request, version, connection)


class Authentication:
    """Of one connection, and of its sessions if they end. Implements `connection_owner.Authentication`."""

    __slots__ = ("_authenticator", "_connection", "_counts", "_max_receive_bytes", "_owner")

    def __init__(
        self,
        owner: Authentications,
        connection: Connection,
        authenticator: SaslServerAuthenticator,
        counts: AuthenticationCounts,
        max_receive_bytes: int,
    ) -> None:
        self._owner = owner
        self._connection = connection
        self._authenticator = authenticator
        self._counts = counts
        self._max_receive_bytes = max_receive_bytes

    def takes(self, request: memoryview, received_ms: int, /) -> bool:
        """Whether the frame is part of the authentication, or the connection is closed. Else it is a request."""
        authenticator = self._authenticator
        if authenticator.is_failed:
            return True
        if authenticator.is_complete:
            now_ns = self._owner.clock.monotonic_ns()
            if request[:2] == _SASL_HANDSHAKE_KEY and authenticator.may_reauthenticate(now_ns):
                self._connection.allow_frames(self._max_receive_bytes, takes_memory=False)
            elif authenticator.is_expired(now_ns):
                self._counts.expired_connections_killed += 1
                self._connection.close_after_answers(CloseReason.SESSION_EXPIRED)
                return True
            else:
                return False
        self._receive(request, received_ms)
        return True

    def refuses_frame(self) -> bool:
        """The next frame is above the limit. Returns whether that fails an authentication."""
        if self._authenticator.is_complete:
            return False
        if not self._authenticator.is_failed:
            ctx = self._begin(0, self._owner.clock.monotonic_ms())
            self._fail(ctx, self._authenticator.invalid_size())
        return True

    def _begin(self, size: int, received_ms: int) -> RequestContext:
        ctx = RequestContext(RequestHeader(ApiKey.SASL_AUTHENTICATE, 0, 0), self._connection, received_ms, size)
        self._connection.begin(ctx)
        if ctx.memory is not None:
            ctx.memory.release()
        return ctx

    def _receive(self, request: memoryview, received_ms: int) -> None:
        token = bytes(request)
        ctx = self._begin(len(request), received_ms)
        try:
            answer = self._authenticator.receive(token)
        except Exception as error:  # noqa: BLE001 - `_refuse` tells a failed authentication from a bug
            self._refuse(ctx, error)
            return
        if isinstance(answer, bytes):
            self._answer(ctx, answer)
        else:
            self._owner.in_background(self._answer_later(ctx, answer))

    async def _answer_later(self, ctx: RequestContext, answer: Awaitable[bytes | None]) -> None:
        work = ctx.work
        assert work is not None, "the connection has begun it"
        work.begin()
        try:
            token = await answer
        except Exception as error:  # noqa: BLE001 - as in `_receive`
            self._refuse(ctx, error)
        else:
            self._answer(ctx, token)
        finally:
            work.end()

    def _refuse(self, ctx: RequestContext, error: Exception) -> None:
        """End the connection; at once and without counting it, unless the authentication has failed.

        Kafka: SaslServerAuthenticator.authenticate, Selector.pollSelectionKeys.
        """
        connection = self._connection
        if isinstance(error, AuthenticationFailed):
            self._fail(ctx, error)
        elif isinstance(error, InvalidPacket):
            reason = str(error)[:_LOGGED_CHARACTERS]
            connection.close_after_answers(CloseReason.INVALID_REQUEST, f"{reason}, before authentication", ctx)
        else:
            logger.warning(
                "Unexpected error from /%s:%d; closing connection",
                connection.client_host,
                connection.client_port,
                exc_info=error,
            )
            detail = "an unexpected error, before authentication"
            connection.close_after_answers(CloseReason.INVALID_REQUEST, detail, ctx)

    def _answer(self, ctx: RequestContext, answer: bytes | None) -> None:
        if self._authenticator.is_complete:
            self._authenticated()
        if answer is not None:
            ctx.answer = frame((answer,))
        self._connection.complete(ctx, None)

    def _authenticated(self) -> None:
        authenticator, connection, counts = self._authenticator, self._connection, self._counts
        if authenticator.is_reauthentication:
            counts.successful_reauthentication += 1
        else:
            counts.successful_authentication += 1
            counts.successful_authentication_no_reauth += not authenticator.supports_reauthentication
        logger.debug(
            "Successfully %sauthenticated with /%s", "re-" * authenticator.is_reauthentication, connection.client_host
        )
        connection.principal = authenticator.principal
        connection.is_token_authenticated = authenticator.is_token_authenticated
        connection.is_authenticated = True
        connection.allow_frames(self._owner.config.socket_request_max_bytes)
        if authenticator.session_expiry_ns is None:
            connection.authentication = None

    def _fail(self, ctx: RequestContext, failure: AuthenticationFailed) -> None:
        is_reauthentication = self._authenticator.is_reauthentication
        # What the client is not told, such as the ticket's principal for which there is no key.
        reason = f": {failure.__cause__}" if isinstance(failure.__cause__, SaslError) else ""
        if is_reauthentication:
            self._counts.failed_reauthentication += 1
        else:
            self._counts.failed_authentication += 1
        logger.info(
            "Failed %sauthentication with /%s:%d (%s)",
            "re-" * is_reauthentication,
            self._connection.client_host,
            self._connection.client_port,
            f"{failure}{reason}"[:_LOGGED_CHARACTERS],
        )
        delay_ms = self._owner.config.connection_failed_authentication_delay_ms
        if delay_ms > 0:
            self._owner.timer.schedule(delay_ms, partial(self._close, ctx, failure.answer))
        else:
            self._close(ctx, failure.answer)

    def _close(self, ctx: RequestContext, answer: bytes | None) -> None:
        connection = self._connection
        if answer is not None:
            ctx.answer = frame((answer,))
        connection.complete(ctx, None)
        connection.flush_answers()
        connection.abort(CloseReason.AUTHENTICATION_FAILED)
