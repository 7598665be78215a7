"""The four messages of SCRAM (RFC 5802, section 7), in the forms that Kafka accepts.

Kafka: ScramMessages, ScramExtensions, ScramFormatter.saslName, ScramFormatter.username.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from odradek.broker.security.sasl.ports import SaslError

# Possessive quantifiers: for each repetition of a group that it may have to give back, `re` keeps 200 bytes.
_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*+(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*+"
_EXTENSIONS_BEFORE_PROOF: Final = rf"(?:,[A-Za-z]+={_VALUE}(?=,))*+"
_RESERVED: Final = rf"(?:m={_VALUE},)?"

_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2_header>n,(?:a=(?P<authzid>{_SASLNAME}))?,){_RESERVED}"
    rf"(?P<bare>n=(?P<saslname>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    rf"{_RESERVED}r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS_BEFORE_PROOF}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64}){_EXTENSIONS}")

TOKEN_AUTH: Final = "tokenauth"
"""The extension of a client that authenticates with a delegation token."""


class ClientFirstMessage(NamedTuple):
    gs2_header: bytes
    """What the client's final message must repeat as its channel binding."""
    bare: bytes
    user: str
    authorization_id: str
    nonce: str
    extensions: Mapping[str, str]

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises: SaslError; so for clients that ask for a channel binding (`p=`, `y`)."""
        found = _matched(_CLIENT_FIRST, message, "client first")
        extensions = found["extensions"]
        return cls(
            gs2_header=found["gs2_header"].encode(),
            bare=found["bare"].encode(),
            user=user_of(found["saslname"]),
            authorization_id=found["authzid"] or "",
            nonce=found["nonce"],
            extensions=dict(part.split("=", 1) for part in extensions[1:].split(",")) if extensions else {},
        )

    @property
    def is_token_authenticated(self) -> bool:
        return self.extensions.get(TOKEN_AUTH, "").lower() == "true"


class ServerFirstMessage(NamedTuple):
    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises: SaslError."""
        found = _matched(_SERVER_FIRST, message, "server first")
        return cls(found["nonce"], _decoded(found["salt"]), int(found["iterations"]))

    def to_bytes(self) -> bytes:
        return f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}".encode()


class ClientFinalMessage(NamedTuple):
    without_proof: bytes
    channel_binding: bytes
    nonce: str
    proof: bytes

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises: SaslError."""
        found = _matched(_CLIENT_FINAL, message, "client final")
        return cls(
            found["without_proof"].encode(), _decoded(found["channel"]), found["nonce"], _decoded(found["proof"])
        )


class ServerFinalMessage(NamedTuple):
    error: str | None
    signature: bytes

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises: SaslError."""
        found = _matched(_SERVER_FINAL, message, "server final")
        return cls(found["error"], _decoded(found["signature"] or ""))

    def to_bytes(self) -> bytes:
        return f"v={base64.b64encode(self.signature).decode()}".encode()


def sasl_name(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")


def user_of(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _matched(pattern: re.Pattern[str], message: bytes, kind: str) -> re.Match[str]:
    found = pattern.fullmatch(message.decode("utf-8", "replace"))
    if found is None:
        raise SaslError(f"Invalid SCRAM {kind} message format")
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SaslError(f"Invalid SCRAM message format: {error}") from None
