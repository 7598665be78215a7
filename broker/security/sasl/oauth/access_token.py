"""The parts of a token (RFC 7515, compact serialization), and what a validator makes of a token.

Reasons never contain the token or a value of it: they are logged.

Kafka: OAuthBearerToken, OAuthBearerIllegalTokenException, SerializedJwt.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final, NamedTuple, Protocol, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Claims: TypeAlias = "dict[str, Json]"

TOKEN_LENGTH_MAX: Final = 64 * 1024
"""A token above it is refused. Tokens have a few kilobytes; `sasl.server.max.receive.size` also limits them."""

_SECONDS_END: Final = 2**53

_TO_STANDARD: Final = str.maketrans("-_", "+/")


class IllegalToken(Exception):
    """The token is refused; the message is the reason. `scope`: the required scope, if the token lacks it."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


class AccessToken(NamedTuple):
    """A token that was found valid."""

    principal_name: str
    expiry_ms: int
    """Wall-clock time."""


class TokenValidator(Protocol):
    def validate(self, token: str, /) -> AccessToken:
        """Raises: IllegalToken."""


def split(token: str) -> tuple[str, str, str]:
    """Header, claims and signature, still encoded. Raises: IllegalToken."""
    parts = token.split(".")
    if len(token) > TOKEN_LENGTH_MAX or len(parts) != 3:
        raise IllegalToken("Malformed JWT provided; expected three sections (header, payload, and signature)")
    return parts[0], parts[1], parts[2]


def decode_bytes(section: str) -> bytes:
    """Decode base64 with either alphabet, with or without padding. Raises: IllegalToken."""
    text = section.rstrip("=").translate(_TO_STANDARD)
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (Base64Error, ValueError):
        raise IllegalToken("malformed Base64 URL encoded value") from None


def decode_object(section: str) -> Claims:
    """Decode a JSON object in which no name stands twice. Raises: IllegalToken."""
    data = decode_bytes(section)
    try:
        value = json.loads(data.decode(), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # raises for half of a surrogate pair, which is no text
    except (ValueError, RecursionError):
        raise IllegalToken("malformed JSON") from None
    if not isinstance(value, dict):
        raise IllegalToken("malformed JSON")
    return value


def _without_duplicates(pairs: list[tuple[str, Json]]) -> Claims:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_constant(text: str) -> Json:
    raise ValueError(f"{text} is no JSON")


def is_number(value: Json) -> bool:
    """Whether a value is a number that may be a time in seconds: true, 1e400 and 10**20 are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _SECONDS_END
