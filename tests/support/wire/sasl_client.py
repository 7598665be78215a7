"""SASL on a raw connection: one message after the other, as the test wants them."""

from __future__ import annotations

from typing import Any

from odradek.broker.security.sasl.ports import SaslClient
from odradek.protocol.api import ApiKey
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build


def handshake(client: RawClient, mechanism: str) -> None:
    answer: Any = client.call(build(ApiKey.SASL_HANDSHAKE, mechanism=mechanism), 1)
    assert answer.error_code == 0, answer


def authenticate(client: RawClient, message: bytes) -> Any:
    """The answer to one message."""
    return client.call(build(ApiKey.SASL_AUTHENTICATE, auth_bytes=message), 2)


def log_in(client: RawClient, mechanism: str, sasl: SaslClient) -> Any:
    """The last answer, whose error the caller may look at."""
    handshake(client, mechanism)
    challenge = b""
    answer: Any = None
    while not sasl.is_complete and (response := sasl.evaluate_challenge(challenge)) is not None:
        answer = authenticate(client, response)
        if answer.error_code:
            return answer
        challenge = answer.auth_bytes
    return answer
