"""The client's side of a SASL authentication: ApiVersions, SaslHandshake, and the tokens in SaslAuthenticate requests.

It runs on any event loop: the caller sends the frames, and decides where an exchange of a mechanism may block.

Kafka: SaslClientAuthenticator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from odradek.broker.security.sasl.ports import SaslError, TransientSaslError
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.protocol.codec.schema import Request, Response

ResponseT = TypeVar("ResponseT", bound="Response")

HANDSHAKE_VERSION: Final = 1
SESSION_USED_PERCENT: Final = 85
SESSION_USED_JITTER_PERCENT: Final = 10
"""A client authenticates again after 85 to 95 percent of its session, so that many clients do not do it at once."""


class ClientAuthenticationFailed(ConnectionError):
    """The server refuses the client, or is not the one that knows the password. Nothing was sent after that."""


class ClientExchange(NamedTuple):
    """How a client authenticates on one connection."""

    mechanism: str
    client_id: str
    send: Callable[[bytes], Awaitable[memoryview | bytes]]
    """Sends a request and returns its answer, both without sizes. Raises: OSError."""
    evaluate: Callable[[bytes], Awaitable[bytes | None]]
    """`SaslClient.evaluate_challenge`, where it may block. Raises: SaslError."""
    random_byte: int = 0
    """Chooses the time of the next authentication."""


class ClientSession(NamedTuple):
    """What a successful authentication has agreed on."""

    usable_ms: int
    """The time after which the client should authenticate again; 0: the session does not end."""
    authenticate_version: int
    """The version of SaslAuthenticate."""


async def authenticate(exchange: ClientExchange, authenticate_version: int | None = None) -> ClientSession:
    """Authenticate on a new connection, or again on one that has agreed on `authenticate_version`.

    Raises: OSError; ClientAuthenticationFailed if the client or the server is refused.
    """
    version = await _agreed_version(exchange) if authenticate_version is None else authenticate_version
    await _handshake(exchange)
    lifetime_ms, correlation_id, challenge = 0, 2, b""
    while (token := await _evaluate(exchange, challenge)) is not None:
        answer = await _ask(
            exchange, correlation_id, SaslAuthenticateRequest(auth_bytes=token), version, SaslAuthenticateResponse
        )
        if answer.error_code != ErrorCode.NONE:
            raise ClientAuthenticationFailed(answer.error_message or f"error {answer.error_code}")
        lifetime_ms, challenge = answer.session_lifetime_ms, bytes(answer.auth_bytes)
        correlation_id += 1
    percent = SESSION_USED_PERCENT + SESSION_USED_JITTER_PERCENT * exchange.random_byte / 255
    return ClientSession(int(lifetime_ms * percent / 100), version)


async def _agreed_version(exchange: ClientExchange) -> int:
    """The version of SaslAuthenticate that both sides know."""
    versions = await _ask(exchange, 0, ApiVersionsRequest(), 0, ApiVersionsResponse)
    highest = {one.api_key: one.max_version for one in versions.api_keys}
    if highest.get(ApiKey.SASL_HANDSHAKE, 0) < HANDSHAKE_VERSION or ApiKey.SASL_AUTHENTICATE not in highest:
        raise ClientAuthenticationFailed("the server does not know SaslAuthenticate")
    return min(highest[ApiKey.SASL_AUTHENTICATE], API[ApiKey.SASL_AUTHENTICATE].max_version)


async def _handshake(exchange: ClientExchange) -> None:
    request = SaslHandshakeRequest(mechanism=exchange.mechanism)
    handshake = await _ask(exchange, 1, request, HANDSHAKE_VERSION, SaslHandshakeResponse)
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise ClientAuthenticationFailed(
            f"Client SASL mechanism '{exchange.mechanism}' not enabled in the server, enabled mechanisms are "
            f"[{', '.join(handshake.mechanisms)}]"
        )
    if handshake.error_code != ErrorCode.NONE:
        raise ClientAuthenticationFailed(
            f"Unknown error code {handshake.error_code}, client mechanism is "
            f"{exchange.mechanism}, enabled mechanisms are [{', '.join(handshake.mechanisms)}]"
        )


async def _evaluate(exchange: ClientExchange, challenge: bytes) -> bytes | None:
    try:
        return await exchange.evaluate(challenge)
    except TransientSaslError as error:
        raise ConnectionAbortedError(str(error)) from error
    except SaslError as error:
        raise ClientAuthenticationFailed(str(error)) from error


async def _ask(
    exchange: ClientExchange, correlation_id: int, request: Request, version: int, response_type: type[ResponseT]
) -> ResponseT:
    header = RequestHeader(ApiKey(request.API_KEY), version, correlation_id, exchange.client_id)
    answer = await exchange.send(encode_request(header, request))
    try:
        answered_id, response = decode_response(ApiKey(request.API_KEY), version, answer)
    except DecodeError as error:
        raise ConnectionAbortedError(f"an invalid answer to {header}: {error}") from error
    if answered_id != correlation_id or not isinstance(response, response_type):
        raise ConnectionAbortedError(f"an answer with correlation id {answered_id} to {header}")
    return response
