from __future__ import annotations

import struct
from collections.abc import Awaitable
from typing import TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslError
from odradek.broker.security.sasl.server_authenticator import (
    AuthenticationFailed,
    EnabledMechanism,
    InvalidPacket,
    SaslServerAuthenticator,
    SaslState,
)
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

ResponseT = TypeVar("ResponseT", bound=Response)


class TwoSteps:
    """A mechanism: `alice` gets the challenge `more`, then `yes` authenticates her."""

    def __init__(self) -> None:
        self.is_complete = False
        self.authorization_id = ""
        self.session_expiry_ms: int | None = None
        self.is_token_authenticated = False

    def evaluate_response(self, response: bytes, /) -> bytes | Awaitable[bytes]:
        match response:
            case b"yes":
                self.is_complete = True
                return b""
            case b"later":
                return self._later()
            case b"refused":
                raise SaslAuthenticationError("Authentication failed: for a reason")
            case b"refused at length":
                raise SaslAuthenticationError("n" * 40_000)
            case b"refused later":
                return self._refused_later()
            case b"invalid":
                raise SaslError("it says too much")
            case b"expiring":
                self.session_expiry_ms = 5_000
                self.authorization_id = "alice"
                return b"more"
        self.authorization_id = response.decode()
        return b"more"

    async def _refused_later(self) -> bytes:
        raise SaslAuthenticationError("n" * 40_000)

    async def _later(self) -> bytes:
        self.is_complete = True
        return b"late"


class Client:
    def __init__(self, max_reauth_ms: int = 0) -> None:
        self.clock = ManualClock(1000, monotonic_ms=2000)
        mechanisms = {name: EnabledMechanism(TwoSteps, max_reauth_ms) for name in ("ONE", "TWO")}
        self.authenticator = SaslServerAuthenticator(
            mechanisms,
            self.clock,
            lambda request, version: ApiVersionsResponse(
                error_code=ErrorCode.INVALID_REQUEST if request.client_software_name == "?" else ErrorCode.NONE
            ),
            lambda: ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION),
            lambda mechanism, user: f"User:{user}",
        )

    def send(self, request: Request, version: int, response_type: type[ResponseT]) -> ResponseT:
        frame = encode_request(RequestHeader(ApiKey(request.API_KEY), version, 5, "me"), request)
        answer = self.authenticator.receive(frame)
        assert isinstance(answer, bytes)
        return decoded(request.API_KEY, version, answer, response_type)

    def versions(self, version: int = 0, name: str = "a") -> int:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        return self.send(request, version, ApiVersionsResponse).error_code

    def handshake(self, mechanism: str = "ONE", version: int = 1) -> SaslHandshakeResponse:
        return self.send(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)

    def token(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        return self.send(SaslAuthenticateRequest(auth_bytes=token), version, SaslAuthenticateResponse)

    async def token_later(self, token: bytes, version: int) -> None:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = self.authenticator.receive(
            encode_request(RequestHeader(ApiKey.SASL_AUTHENTICATE, version, 5, "me"), request)
        )
        assert not isinstance(answer, bytes)
        await answer

    def authenticate(self, user: bytes = b"alice", version: int = 2) -> int:
        """Returns the lifetime of the session in ms."""
        self.handshake()
        assert self.token(user, version).auth_bytes == b"more"
        return self.token(b"yes", version).session_lifetime_ms

    @property
    def state(self) -> SaslState:
        return self.authenticator.state


def decoded(key: int, version: int, answer: bytes, response_type: type[ResponseT]) -> ResponseT:
    correlation_id, response = decode_response(ApiKey(key), version, answer)
    assert correlation_id == 5
    assert isinstance(response, response_type)
    return response


def test_the_way_to_authentication() -> None:
    client = Client()
    assert client.state is SaslState.INITIAL_REQUEST
    assert client.versions() == 0
    assert client.state is SaslState.HANDSHAKE_REQUEST
    assert client.handshake() == SaslHandshakeResponse(mechanisms=["ONE", "TWO"])
    assert client.state is SaslState.AUTHENTICATE
    assert client.token(b"alice").auth_bytes == b"more"
    assert client.token(b"yes") == SaslAuthenticateResponse()
    assert client.state is SaslState.COMPLETE
    assert client.authenticator.principal == "User:alice"
    assert client.authenticator.session_expiry_ns is None
    assert not client.authenticator.may_reauthenticate(0)


def test_tokens_are_bare_after_version_0_of_the_handshake() -> None:
    client = Client()
    client.handshake(version=0)
    assert client.authenticator.receive(b"alice") == b"more"
    assert client.authenticator.receive(b"yes") == b""
    assert client.authenticator.is_complete
    assert not client.authenticator.supports_reauthentication


@async_test
async def test_an_answer_may_come_later() -> None:
    client = Client()
    client.handshake(version=0)
    answer = client.authenticator.receive(b"later")
    assert not client.authenticator.is_complete
    assert await cast("Awaitable[bytes]", answer) == b"late"
    assert client.authenticator.is_complete


def test_versions_that_cannot_be_answered_may_be_asked_for_again() -> None:
    client = Client()
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 5, 2) + b"me\0"
    answer = client.authenticator.receive(frame)
    assert isinstance(answer, bytes)
    assert decoded(ApiKey.API_VERSIONS, 0, answer, ApiVersionsResponse).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert client.versions(3, "?") == ErrorCode.INVALID_REQUEST
    assert client.versions(3) == 0
    with pytest.raises(InvalidPacket, match="Unexpected ApiVersions request received"):
        client.versions(3)


def in_state(state: SaslState) -> Client:
    client = Client(max_reauth_ms=10_000)
    match state:
        case SaslState.HANDSHAKE_OR_VERSIONS_REQUEST:
            client.versions(3, "?")
        case SaslState.HANDSHAKE_REQUEST:
            client.versions()
        case SaslState.AUTHENTICATE:
            client.handshake()
        case SaslState.REAUTH_PROCESS_HANDSHAKE:
            client.authenticate()
            assert client.authenticator.may_reauthenticate(client.clock.monotonic_ns())
    assert client.state is state
    return client


BEFORE_TOKENS = (
    SaslState.INITIAL_REQUEST,
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST,
    SaslState.HANDSHAKE_REQUEST,
    SaslState.REAUTH_PROCESS_HANDSHAKE,
)
EVERY_VERSION = [
    (key, version) for key, spec in API.items() for version in range(spec.min_version, spec.max_version + 2)
]


@pytest.mark.parametrize("state", [*BEFORE_TOKENS, SaslState.AUTHENTICATE])
def test_no_other_api_is_answered_in_any_version(state: SaslState) -> None:
    served = (
        {ApiKey.SASL_AUTHENTICATE} if state is SaslState.AUTHENTICATE else {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
    )
    for key, version in EVERY_VERSION:
        if key in served:
            continue
        client = in_state(state)
        name, has_tags = API[key].name, API[key].request_header_version(version) == 2
        frame = struct.pack(">hhih", key, version, 5, 2) + b"me" + b"\0" * has_tags + bytes(50)
        during = "authentication" if state is SaslState.AUTHENTICATE else "handshake"
        with pytest.raises(
            AuthenticationFailed, match=rf"^Unexpected Kafka request of type {name} during SASL {during}\.$"
        ):
            client.authenticator.receive(frame)
        assert client.authenticator.is_failed


@pytest.mark.parametrize("frame", [b"", b"\x60\x82", b"\0\x7f\0\0\0\0\0\0\0\0", b"GET / HTTP/1.1\r\n"])
def test_a_first_frame_that_is_no_request_would_be_a_token_of_kerberos(frame: bytes) -> None:
    message = "Exception handling first SASL packet from client, GSSAPI is not supported by server"
    with pytest.raises(AuthenticationFailed, match=f"^{message}$"):
        Client().authenticator.receive(frame)
    for state in (*BEFORE_TOKENS[1:], SaslState.AUTHENTICATE):
        with pytest.raises(InvalidPacket):
            in_state(state).authenticator.receive(frame)


@given(st.binary(), st.sampled_from([*BEFORE_TOKENS, SaslState.AUTHENTICATE]))
def test_any_frame_is_answered_or_refused(frame: bytes, state: SaslState) -> None:
    client = in_state(state)
    try:
        client.authenticator.receive(frame)
    except (AuthenticationFailed, InvalidPacket):
        return
    assert not (client.authenticator.is_complete and state is not SaslState.REAUTH_PROCESS_HANDSHAKE)


@pytest.mark.parametrize(
    ("request_", "version", "response_type"),
    [(ApiVersionsRequest(), 0, ApiVersionsResponse), (SaslHandshakeRequest(mechanism="ONE"), 1, SaslHandshakeResponse)],
)
def test_a_request_among_tokens_is_told_that_the_state_is_illegal(
    request_: Request, version: int, response_type: type[Response]
) -> None:
    client = in_state(SaslState.AUTHENTICATE)
    with pytest.raises(AuthenticationFailed) as failure:
        client.send(request_, version, response_type)
    assert failure.value.answer is not None
    response = decoded(request_.API_KEY, version, failure.value.answer, response_type)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE  # type: ignore[attr-defined]


def test_an_unknown_mechanism_is_answered_with_the_known_ones() -> None:
    client = Client()
    with pytest.raises(AuthenticationFailed, match=r"^Unsupported SASL mechanism THREE$") as failure:
        client.handshake("THREE")
    assert failure.value.answer is not None
    assert decoded(17, 1, failure.value.answer, SaslHandshakeResponse) == SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["ONE", "TWO"]
    )


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"refused", "Authentication failed: for a reason"),
        (b"invalid", "Authentication failed during authentication due to invalid credentials with SASL mechanism ONE"),
    ],
)
def test_a_refused_token(token: bytes, message: str) -> None:
    client = Client()
    client.handshake()
    with pytest.raises(AuthenticationFailed) as failure:
        client.token(token)
    assert str(failure.value) == message
    assert failure.value.answer is not None
    assert decoded(36, 2, failure.value.answer, SaslAuthenticateResponse) == SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
    )
    with pytest.raises(InvalidPacket):
        client.authenticator.receive(b"alice")


def test_a_refused_bare_token() -> None:
    """An exchange that is not valid is an error of the connection, as in Apache Kafka; a refusal is none."""
    client = Client()
    client.handshake(version=0)
    with pytest.raises(AuthenticationFailed, match="Authentication failed: for a reason") as failure:
        client.authenticator.receive(b"refused")
    assert failure.value.answer is None
    client = Client()
    client.handshake(version=0)
    with pytest.raises(InvalidPacket, match="it says too much"):
        client.authenticator.receive(b"invalid")
    assert client.authenticator.is_failed


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("token", [b"refused at length", b"refused later"])
@async_test
async def test_a_refusal_that_is_too_long_for_an_answer_has_none(token: bytes, version: int) -> None:
    """A client chooses the names that are in it."""
    client = Client()
    client.handshake()
    with pytest.raises(InvalidPacket, match="the answer cannot be encoded: "):
        await client.token_later(token, version)
    assert client.authenticator.is_failed


def test_a_session_ends_after_its_time() -> None:
    client = Client(max_reauth_ms=10_000)
    assert client.authenticate() == 10_000
    end_ns = client.clock.monotonic_ns() + 10_000 * 1_000_000
    assert not client.authenticator.is_expired(end_ns)
    assert client.authenticator.is_expired(end_ns + 1)


@pytest.mark.parametrize(("max_reauth_ms", "lifetime_ms"), [(0, 4_000), (10_000, 4_000), (3_000, 3_000)])
def test_a_session_ends_with_its_credential(max_reauth_ms: int, lifetime_ms: int) -> None:
    client = Client(max_reauth_ms)
    client.handshake()
    client.token(b"expiring")
    assert client.token(b"yes").session_lifetime_ms == lifetime_ms


def test_a_credential_that_has_expired_ends_the_session_at_once() -> None:
    client = Client()
    client.clock.advance(4_500)
    client.handshake()
    client.token(b"expiring")
    assert client.token(b"yes").session_lifetime_ms == 0
    assert client.authenticator.is_expired(client.clock.monotonic_ns() + 1)


def test_a_client_authenticates_again_as_the_same_user() -> None:
    client = Client(max_reauth_ms=10_000)
    client.authenticate()
    client.clock.advance(9_000)
    assert client.authenticator.may_reauthenticate(client.clock.monotonic_ns())
    assert client.authenticate() == 10_000
    assert client.authenticator.is_reauthentication
    assert not client.authenticator.is_expired(client.clock.monotonic_ns() + 10_000 * 1_000_000)


def test_a_client_authenticates_again_once_a_second_at_most() -> None:
    client = Client(max_reauth_ms=10_000)
    client.authenticate()
    now_ns = client.clock.monotonic_ns()
    assert client.authenticator.may_reauthenticate(now_ns)
    client.authenticate()
    assert not client.authenticator.may_reauthenticate(now_ns + 999_999_999)
    assert client.authenticator.may_reauthenticate(now_ns + 1_000_000_000)


def test_the_handshake_of_a_reauthentication_says_whether_tokens_are_bare() -> None:
    client = Client(max_reauth_ms=10_000)
    client.authenticate()
    assert client.authenticator.supports_reauthentication
    client.authenticator.may_reauthenticate(client.clock.monotonic_ns())
    client.handshake(version=0)
    assert client.authenticator.receive(b"alice") == b"more"
    assert client.authenticator.receive(b"yes") == b""
    assert client.authenticator.is_complete
    assert not client.authenticator.supports_reauthentication


def test_the_user_stays_the_same() -> None:
    client = Client(max_reauth_ms=10_000)
    client.authenticate()
    client.authenticator.may_reauthenticate(client.clock.monotonic_ns())
    client.handshake()
    client.token(b"bob")
    message = r"^Cannot change principals during re-authentication from User\.alice: User\.bob$"
    with pytest.raises(AuthenticationFailed, match=message):
        client.token(b"yes")
    assert client.authenticator.is_failed


def test_the_mechanism_stays_the_same() -> None:
    client = Client(max_reauth_ms=10_000)
    client.authenticate()
    client.authenticator.may_reauthenticate(client.clock.monotonic_ns())
    assert client.handshake("TWO").error_code == 0
    message = "SASL mechanism 'TWO' requested by client is not supported for re-authentication of mechanism 'ONE'"
    with pytest.raises(AuthenticationFailed, match=f"^{message}$"):
        client.token(b"alice")
