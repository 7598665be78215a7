"""Uuids on the wire and in text: 16 bytes, printed as 22 characters of URL-safe base64.

A uuid is plain `bytes` of length 16 everywhere in this code base: it is hashed, compared and copied on hot paths and
never computed with. Sixteen zero bytes mean "none".

Kafka: Uuid.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64

UUID_SIZE = 16
ZERO_UUID = bytes(UUID_SIZE)
_TEXT_LENGTH = 22
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def uuid_to_text(uuid: bytes) -> str:
    """The 22 characters Kafka prints for a uuid: base64 with `-` and `_`, without padding."""
    if len(uuid) != UUID_SIZE:
        raise ValueError(f"a uuid has {UUID_SIZE} bytes, not {len(uuid)}")
    return b2a_base64(uuid, newline=False).translate(_TO_URL_SAFE).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The inverse of `uuid_to_text`; ValueError for anything that is not the text of 16 bytes."""
    if len(text) > _TEXT_LENGTH + 2:
        raise ValueError(f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID")
    if "+" in text or "/" in text:
        raise ValueError(f"`{text}` is not a base64 UUID: it is not in the URL-safe alphabet")
    try:
        encoded = text.rstrip("=").encode("ascii").translate(_FROM_URL_SAFE)
        uuid = a2b_base64(encoded + b"=" * (-len(encoded) % 4), strict_mode=True)
    except (Base64Error, UnicodeEncodeError) as error:
        raise ValueError(f"`{text}` is not a base64 UUID: {error}") from error
    if len(uuid) != UUID_SIZE:
        raise ValueError(f"Input string `{text}` decoded as {len(uuid)} bytes, which is not equal to 16 bytes")
    return uuid
