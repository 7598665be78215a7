"""Keys and values of the internal topics: a 16-bit version, then a message in that version.

Kafka: MessageUtil.toVersionPrefixedBytes.
"""

from __future__ import annotations

from typing import TypeVar

from odradek.protocol.codec.codec import DecodeError, decode
from odradek.protocol.codec.schema import Message

MessageT = TypeVar("MessageT", bound=Message)


class CoordinatorRecordError(ValueError):
    """A record of an internal topic that cannot be decoded."""


def read_version(data: bytes) -> int:
    """The version in front of a key or value."""
    if len(data) < 2:
        raise CoordinatorRecordError(f"a key or value of {len(data)} bytes has no version")
    return int.from_bytes(data[:2], "big", signed=True)


def decode_versioned(kind: type[MessageT], data: bytes) -> MessageT:
    """The message. Raises CoordinatorRecordError for an unknown version or bad bytes."""
    version = read_version(data)
    if not kind.VERSIONS.covers(version):
        raise CoordinatorRecordError(f"unknown version {version} of {kind.__name__}")
    try:
        return decode(kind, memoryview(data)[2:], version)
    except DecodeError as error:
        raise CoordinatorRecordError(f"bad {kind.__name__}: {error}") from error
