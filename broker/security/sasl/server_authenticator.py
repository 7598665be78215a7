"""The states of a SASL authentication on an accepted connection, from its first frame on. No I/O.

A client sends ApiVersions (once, if at all), SaslHandshake with its mechanism, and the tokens of the mechanism: in
SaslAuthenticate requests after SaslHandshake v1, as bare frames after v0. If GSSAPI is enabled, a first frame that is
no request is its token. Everything else fails the authentication.

A session may have an end: `connections.max.reauth.ms`, or that of the credential. Before it the client authenticates
again on the same connection, with the same mechanism and as the same user (KIP-368).

Kafka: SaslServerAuthenticator.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

from odradek.broker.security.principal_builder import PrincipalRefused
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslError, TransientSaslError
from odradek.protocol.api import API, ApiKey, ApiSpec
from odradek.protocol.codec.codec import EncodeError, decode
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import (
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    encode_response_parts,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslServer
    from odradek.protocol.codec.schema import Response
    from odradek.timer.clock import Clock

RequestT = TypeVar("RequestT", ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)


FIRST_WRAPPED_VERSION: Final = 1
"""The version of SaslHandshake from which on tokens are wrapped in SaslAuthenticate."""

DEFAULT_MECHANISM: Final = "GSSAPI"
"""A first frame that is no request is its token: clients of Kafka 0.9 send no SaslHandshake."""

MIN_REAUTH_INTERVAL_NS: Final = 1_000_000_000

_NS_PER_MS: Final = 1_000_000


class SaslState(Enum):
    INITIAL_REQUEST = auto()
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()
    REAUTH_PROCESS_HANDSHAKE = auto()
    REAUTH_BAD_MECHANISM = auto()


class AuthenticationFailed(Exception):
    """The connection is to be closed, after `connection.failed.authentication.delay.ms` and with an answer, if any."""

    def __init__(self, message: str, answer: bytes | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class InvalidPacket(Exception):
    """The connection is to be closed at once."""


class EnabledMechanism(NamedTuple):
    make_server: MakeSaslServer
    max_reauth_ms: int
    """0: a session does not end."""
    when_closed: Sequence[Callable[[], None]] = ()
    """Called when the listener is closed."""


class SaslServerAuthenticator:
    """One connection. `answer_versions` answers ApiVersions and notes the software of the client. `apis`: the APIs that
    clients may ask for, by key.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, EnabledMechanism],
        clock: Clock,
        answer_versions: Callable[[ApiVersionsRequest, int], ApiVersionsResponse],
        answer_unsupported_versions: Callable[[], ApiVersionsResponse],
        principal_of: Callable[[str, str], str],
        apis: Mapping[int, ApiSpec] = API,
    ) -> None:
        """`principal_of(mechanism, authorization_id)`: such as `User:alice`. Raises: PrincipalRefused."""
        self._apis = apis
        self._mechanisms = mechanisms
        self._clock = clock
        self._answer_versions = answer_versions
        self._answer_unsupported_versions = answer_unsupported_versions
        self._principal_of = principal_of
        self.state = SaslState.INITIAL_REQUEST
        self.principal = ""
        self.is_token_authenticated = False
        self.is_reauthentication = False
        self.session_expiry_ns: int | None = None
        """Monotonic time; None: the session does not end."""
        self.supports_reauthentication = False
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._wraps_tokens = False
        self._bad_mechanism = ""
        self._reauthentication_began_ns: int | None = None

    @property
    def is_complete(self) -> bool:
        return self.state is SaslState.COMPLETE

    @property
    def is_failed(self) -> bool:
        return self.state is SaslState.FAILED

    def invalid_size(self) -> AuthenticationFailed:
        """A frame is larger than `sasl.server.max.receive.size`."""
        return self._failed("Failing SASL authentication due to invalid receive size")

    def receive(self, frame: bytes) -> bytes | Awaitable[bytes | None]:
        """The answer to a frame, without its size; None: there is none.

        Raises: AuthenticationFailed, InvalidPacket.
        """
        match self.state:
            case SaslState.AUTHENTICATE:
                return self._handle_token(frame)
            case SaslState.REAUTH_BAD_MECHANISM:
                raise self._failed(self._bad_mechanism)
            case SaslState.COMPLETE | SaslState.FAILED:
                raise InvalidPacket(f"a frame in state {self.state.name}")
        return self._handle_kafka_request(frame)

    def may_reauthenticate(self, now_ns: int) -> bool:
        """Whether a SaslHandshake now begins a re-authentication. Else it is answered with ILLEGAL_SASL_STATE."""
        if self.session_expiry_ns is None:
            return False
        began_ns = self._reauthentication_began_ns
        if began_ns is not None and now_ns - began_ns < MIN_REAUTH_INTERVAL_NS:
            return False
        self._reauthentication_began_ns = now_ns
        self.is_reauthentication = True
        self._wraps_tokens = self.supports_reauthentication = False  # as at first: this handshake decides again
        self.state = SaslState.REAUTH_PROCESS_HANDSHAKE
        return True

    def is_expired(self, now_ns: int) -> bool:
        return self.session_expiry_ns is not None and now_ns > self.session_expiry_ns

    # -- requests before the tokens

    def _handle_kafka_request(self, frame: bytes) -> bytes | Awaitable[bytes | None]:
        try:
            header, position = _read_header(frame, self._apis)
        except DecodeError as error:
            if self.state is not SaslState.INITIAL_REQUEST:
                raise InvalidPacket(str(error)) from error
            if DEFAULT_MECHANISM in self._mechanisms:
                self._begin(DEFAULT_MECHANISM, self._mechanisms[DEFAULT_MECHANISM])
                return self._handle_token(frame)
            raise self._failed(
                "Exception handling first SASL packet from client, GSSAPI is not supported by server"
            ) from error
        if self.state is SaslState.INITIAL_REQUEST:
            self.state = SaslState.HANDSHAKE_OR_VERSIONS_REQUEST
        if header.api_key == ApiKey.API_VERSIONS:
            return self._handle_versions(frame, header, position)
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._handle_handshake(frame, header, position)
        raise self._failed(f"Unexpected Kafka request of type {API[header.api_key].name} during SASL handshake.")

    def _handle_versions(self, frame: bytes, header: RequestHeader, position: int | None) -> bytes:
        if self.state is not SaslState.HANDSHAKE_OR_VERSIONS_REQUEST:
            raise InvalidPacket(
                f"Unexpected ApiVersions request received during SASL authentication state {self.state.name}"
            )
        if position is None:
            header.api_version = 0
            return _encoded(header, self._answer_unsupported_versions())
        request = _decoded(ApiVersionsRequest, frame, header, position)
        response = self._answer_versions(request, header.api_version)
        if response.error_code == ErrorCode.NONE:
            self.state = SaslState.HANDSHAKE_REQUEST
        return _encoded(header, response)

    def _handle_handshake(self, frame: bytes, header: RequestHeader, position: int | None) -> bytes:
        mechanism = _decoded(SaslHandshakeRequest, frame, header, position).mechanism
        if header.api_version >= FIRST_WRAPPED_VERSION:
            self._wraps_tokens = True
        names = list(self._mechanisms)
        enabled = self._mechanisms.get(mechanism)
        if enabled is None:
            response = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            raise self._failed(f"Unsupported SASL mechanism {mechanism}", _encoded(header, response))
        if self.is_reauthentication and mechanism != self._mechanism:
            self._bad_mechanism = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{self._mechanism}'"
            )
            self.state = SaslState.REAUTH_BAD_MECHANISM
        else:
            self._begin(mechanism, enabled)
        return _encoded(header, SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=names))

    def _begin(self, mechanism: str, enabled: EnabledMechanism) -> None:
        self._mechanism = mechanism
        self._server = enabled.make_server()
        self.state = SaslState.AUTHENTICATE

    # -- tokens

    def _handle_token(self, frame: bytes) -> bytes | Awaitable[bytes | None]:
        header: RequestHeader | None = None
        token = frame
        if self._wraps_tokens:
            header, token = self._unwrapped(frame)
        assert self._server is not None, "made by the handshake"
        try:
            challenge = self._server.evaluate_response(token)
            if isinstance(challenge, bytes):
                return self._answer(header, challenge)
        except (SaslAuthenticationError, SaslError) as error:
            raise self._refused(header, error) from error
        return self._answer_later(header, challenge)

    async def _answer_later(self, header: RequestHeader | None, challenge: Awaitable[bytes | None]) -> bytes | None:
        try:
            token = await challenge
            answer = self._answer(header, token or b"")
            return None if header is None and token is None else answer
        except (SaslAuthenticationError, SaslError) as error:
            raise self._refused(header, error) from error

    def _unwrapped(self, frame: bytes) -> tuple[RequestHeader, bytes]:
        try:
            header, position = _read_header(frame, self._apis)
        except DecodeError as error:
            raise InvalidPacket(str(error)) from error
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise self._failed(
                f"Unexpected Kafka request of type {API[header.api_key].name} during SASL authentication.",
                self._illegal_state(header, position),
            )
        request = _decoded(SaslAuthenticateRequest, frame, header, position)
        self.supports_reauthentication = self.supports_reauthentication or header.api_version > 0
        return header, bytes(request.auth_bytes)

    def _illegal_state(self, header: RequestHeader, position: int | None) -> bytes | None:
        """The answer to another request than SaslAuthenticate. Apache Kafka decodes and answers any request."""
        if position is None:
            return None
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return _encoded(header, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        if header.api_key == ApiKey.API_VERSIONS:
            return _encoded(header, ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return None

    def _answer(self, header: RequestHeader | None, challenge: bytes) -> bytes:
        lifetime_ms = self._complete() if self._server is not None and self._server.is_complete else 0
        if header is None:
            return challenge
        return _encoded(header, SaslAuthenticateResponse(auth_bytes=challenge, session_lifetime_ms=lifetime_ms))

    def _complete(self) -> int:
        """The client is authenticated. Returns the session's lifetime in ms; 0: no limit, or none left."""
        server = self._server
        assert server is not None, "it is complete"
        try:
            principal = self._principal_of(self._mechanism, server.authorization_id)
        except PrincipalRefused as refusal:
            raise SaslError(str(refusal)) from refusal
        if self.is_reauthentication and principal != self.principal:
            old, new = (name.replace(":", ".", 1) for name in (self.principal, principal))
            raise SaslAuthenticationError(f"Cannot change principals during re-authentication from {old}: {new}")
        limits = [] if server.session_expiry_ms is None else [server.session_expiry_ms - self._clock.time_ms()]
        max_reauth_ms = self._mechanisms[self._mechanism].max_reauth_ms
        if max_reauth_ms > 0:
            limits.append(max_reauth_ms)
        lifetime_ms = max(0, min(limits)) if limits else 0
        self.session_expiry_ns = self._clock.monotonic_ns() + lifetime_ms * _NS_PER_MS if limits else None
        self.principal = principal
        self.is_token_authenticated = server.is_token_authenticated
        self._server = None
        self.state = SaslState.COMPLETE
        return lifetime_ms

    # -- failures

    def _failed(self, message: str, answer: bytes | None = None) -> AuthenticationFailed:
        self.state = SaslState.FAILED
        self._server = None
        return AuthenticationFailed(message, answer)

    def _refused(self, header: RequestHeader | None, error: Exception) -> AuthenticationFailed | InvalidPacket:
        """In Apache Kafka some errors are those of the connection (IOException), not of the authentication: what may
        pass, and of bare tokens each `SaslError`.
        """
        message = str(error)
        if isinstance(error, TransientSaslError) or (isinstance(error, SaslError) and header is None):
            self._failed(message)
            return InvalidPacket(message)
        if isinstance(error, SaslError):  # its text may say whether the user exists
            kind = "re-authentication" if self.is_reauthentication else "authentication"
            message = (
                f"Authentication failed during {kind} due to invalid credentials with SASL mechanism {self._mechanism}"
            )
        failure = self._failed(message)
        if header is not None:
            response = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message)
            try:
                failure.answer = _encoded(header, response)
            except EncodeError as too_long:  # the client's names are part of it
                return InvalidPacket(f"the answer cannot be encoded: {too_long}")
        return failure


def _read_header(frame: bytes, apis: Mapping[int, ApiSpec]) -> tuple[RequestHeader, int | None]:
    """The header, and the position of the body; None if the version is not served. Raises: DecodeError."""
    try:
        return decode_request_header(frame, apis)
    except UnsupportedVersionError as error:
        return error.header, None


def _decoded(request_type: type[RequestT], frame: bytes, header: RequestHeader, position: int | None) -> RequestT:
    if position is None:
        raise InvalidPacket(f"{API[header.api_key].name} version {header.api_version} is not supported")
    try:
        return decode(request_type, memoryview(frame), header.api_version, None, position)
    except DecodeError as error:
        raise InvalidPacket(str(error)) from error


def _encoded(header: RequestHeader, response: Response) -> bytes:
    parts = encode_response_parts(header.api_key, header.api_version, header.correlation_id, response)
    return b"".join(cast("list[bytes]", parts))  # no region of a file is in them
