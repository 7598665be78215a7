from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.security.sasl.client_authenticator import (
    ClientAuthenticationFailed,
    ClientExchange,
    ClientSession,
    authenticate,
)
from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.ports import SaslError, TransientSaslError
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import decode
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import decode_request_header, encode_response_parts
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.async_test import async_test


def versions(authenticate_max: int = 2, handshake_max: int = 1) -> ApiVersionsResponse:
    highest = {ApiKey.SASL_HANDSHAKE: handshake_max, ApiKey.SASL_AUTHENTICATE: authenticate_max}
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, max_version=version) for key, version in highest.items()]
    )


class Server:
    """Answers with the given responses, in their order."""

    def __init__(self, *responses: Response) -> None:
        self.responses = list(responses)
        self.received: list[tuple[int, int, int]] = []
        self.tokens: list[bytes] = []
        self.correlation_id: Callable[[int], int] = lambda sent: sent

    async def send(self, request: bytes) -> bytes:
        header, position = decode_request_header(request)
        self.received.append((header.api_key, header.api_version, header.correlation_id))
        if header.api_key == ApiKey.SASL_AUTHENTICATE:
            body = decode(SaslAuthenticateRequest, memoryview(request), header.api_version, None, position)
            self.tokens.append(bytes(body.auth_bytes))
        parts = encode_response_parts(
            header.api_key, header.api_version, self.correlation_id(header.correlation_id), self.responses.pop(0)
        )
        return b"".join(parts)  # type: ignore[arg-type]

    async def authenticate(self, version: int | None = None, random_byte: int = 0) -> ClientSession:
        client = PlainSaslClient("alice", "secret")

        async def evaluate(challenge: bytes) -> bytes | None:
            if challenge == b"wrong":
                raise SaslError("another server")
            if challenge == b"replay":
                raise TransientSaslError("Request is a replay")
            return client.evaluate_challenge(challenge)

        return await authenticate(ClientExchange("PLAIN", "me", self.send, evaluate, random_byte), version)


@async_test
async def test_the_requests_of_an_authentication() -> None:
    answer = SaslAuthenticateResponse(session_lifetime_ms=10_000)
    server = Server(versions(authenticate_max=1), SaslHandshakeResponse(), answer)
    assert await server.authenticate() == ClientSession(8_500, 1)
    assert server.received == [(18, 0, 0), (17, 1, 1), (36, 1, 2)]
    assert server.tokens == [b"\0alice\0secret"]
    unlimited = Server(versions(), SaslHandshakeResponse(), SaslAuthenticateResponse())
    assert await unlimited.authenticate() == ClientSession(0, 2)


@async_test
async def test_another_authentication_begins_with_the_handshake() -> None:
    server = Server(SaslHandshakeResponse(), SaslAuthenticateResponse(session_lifetime_ms=10_000))
    assert await server.authenticate(version=1, random_byte=255) == ClientSession(9_500, 1)
    assert server.received == [(17, 1, 1), (36, 1, 2)]


REFUSED = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="for a reason")


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ([versions(handshake_max=0)], "does not know SaslAuthenticate"),
        (
            [versions(), SaslHandshakeResponse(error_code=33, mechanisms=["A", "B"])],
            r"'PLAIN' not enabled in the server, enabled mechanisms are \[A, B\]",
        ),
        ([versions(), SaslHandshakeResponse(error_code=34)], "Unknown error code 34"),
        ([versions(), SaslHandshakeResponse(), REFUSED], "^for a reason$"),
        ([versions(), SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"wrong")], "another server"),
    ],
)
def test_refusals(responses: list[Response], message: str) -> None:
    @async_test
    async def run() -> None:
        with pytest.raises(ClientAuthenticationFailed, match=message):
            await Server(*responses).authenticate()

    run()


@async_test
async def test_an_answer_to_another_request_ends_the_connection() -> None:
    server = Server(versions())
    server.correlation_id = lambda sent: sent + 1
    with pytest.raises(ConnectionAbortedError, match="correlation id 1"):
        await server.authenticate()


@async_test
async def test_a_failure_that_may_pass_is_one_of_the_connection() -> None:
    server = Server(versions(), SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"replay"))
    with pytest.raises(ConnectionAbortedError, match="Request is a replay"):
        await server.authenticate()
