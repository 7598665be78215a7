"""The stored form of a SCRAM password: what the server needs to check it, not the password.

Kafka: ScramCredential, ScramCredentialUtils.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple, Self

from odradek.protocol.java_split import java_split
from odradek.storage.config.config_def import parse_int32

_NAMES: Final = {"salt", "stored_key", "server_key", "iterations"}


class ScramCredential(NamedTuple):
    """The values of RFC 5802, section 3. The repr has no secrets."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Parse a value of `/config/users`. Raises: ValueError, without the text, which is a secret.

        Kafka: ScramCredentialUtils.credentialFromString.
        """
        parts = [part.partition("=") for part in java_split(text)]
        values = {name: value for name, _, value in parts}  # of a name that stands twice the last one counts
        iterations = parse_int32(values.get("iterations", ""))
        if iterations is None or set(values) != _NAMES or not all(equals for _, equals, _ in parts):
            raise ValueError("Credentials not valid")
        try:
            salt, stored_key, server_key = (
                base64.b64decode(values[name], validate=True) for name in ("salt", "stored_key", "server_key")
            )
        except (binascii.Error, ValueError):
            raise ValueError("Credentials not valid") from None
        return cls(salt, stored_key, server_key, iterations)

    def to_text(self) -> str:
        """The value of `/config/users`, byte for byte as Apache Kafka writes it."""
        salt, stored_key, server_key = (base64.b64encode(value).decode() for value in self[:3])
        return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={self.iterations}"

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"
