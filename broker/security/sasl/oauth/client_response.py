"""The first message of an OAUTHBEARER client: the authorization id, the token and the extensions.

Kafka: OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from odradek.broker.security.sasl.ports import SaslError

if TYPE_CHECKING:
    from collections.abc import Mapping

SEPARATOR: Final = "\x01"

_AUTH: Final = "auth"
_MESSAGE: Final = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*+)\x01"
)
"""With possessive quantifiers: for each repetition of a group that it may have to give back, `re` keeps 200 bytes."""
_BEARER: Final = re.compile(r"(?P<scheme>[0-9A-Za-z_]+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class ClientInitialResponse(NamedTuple):
    """The repr does not show the token."""

    token: str
    authorization_id: str
    """Empty: that of the token."""
    extensions: Mapping[str, str]

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises: SaslError."""
        match = _MESSAGE.fullmatch(message.decode("utf-8", "replace"))
        if match is None:
            raise SaslError("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(SEPARATOR) if pair)
        auth = pairs.pop(_AUTH, None)
        if auth is None:
            raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
        bearer = _BEARER.fullmatch(auth)
        if bearer is None:
            raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
        if bearer["scheme"].lower() != "bearer":
            raise SaslError("Invalid scheme in OAUTHBEARER client first message")
        return cls(bearer["token"], match["authzid"] or "", pairs)

    def to_bytes(self) -> bytes:
        authorization_id = f"a={self.authorization_id}" if self.authorization_id else ""
        extensions = "".join(f"{SEPARATOR}{name}={value}" for name, value in self.extensions.items())
        pairs = f"{_AUTH}=Bearer {self.token}{extensions}"
        return f"n,{authorization_id},{SEPARATOR}{pairs}{SEPARATOR}{SEPARATOR}".encode()

    def __repr__(self) -> str:
        return f"ClientInitialResponse({self.authorization_id!r}, {self.extensions})"
