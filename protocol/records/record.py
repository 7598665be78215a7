"""Records of magic 2: the values, and their bytes.

    length varint | attributes i8 | timestamp delta varlong | offset delta varint | key length varint | key
    | value length varint | value | header count varint | {key length varint | key | value length varint | value}*

Length excludes itself; a length of -1 is null. The bytes of a batch are read in `record_walks.py`.

Kafka: DefaultRecord.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.layout import NO_SEQUENCE

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

HEADER_KEY_ERRORS: Final = "surrogateescape"
"""Header keys are UTF-8 by definition; whatever else a client sent survives a rebuilt batch byte for byte."""


class SimpleRecord(NamedTuple):
    """A record that has no offset yet."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Record(NamedTuple):
    """A record at its place in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = NO_SEQUENCE

    @property
    def size_in_bytes(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


def append_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """Append one record."""
    # Most numbers are small: to call a function for each takes longer than the rest.
    key_size = value_size = _NULL
    if key is None:
        key = b""
    else:
        size = len(key)
        key_size = _SMALL[size] if size < _SMALL_COUNT else write_varint(size)
    if value is None:
        value = b""
    else:
        size = len(value)
        value_size = _SMALL[size] if size < _SMALL_COUNT else write_varint(size)
    timestamp_bytes = _SMALL[timestamp_delta] if 0 <= timestamp_delta < _SMALL_COUNT else write_varint(timestamp_delta)
    offset_bytes = _SMALL[offset_delta] if 0 <= offset_delta < _SMALL_COUNT else write_varint(offset_delta)
    header_bytes = _encode_headers(headers) if headers else b"\x00"
    size = 1 + len(timestamp_bytes) + len(offset_bytes) + len(key_size) + len(key) + len(value_size) + len(value)
    size += len(header_bytes)
    out += b"".join(
        (
            _SMALL[size] if size < _SMALL_COUNT else write_varint(size),
            _NO_ATTRIBUTES,
            timestamp_bytes,
            offset_bytes,
            key_size,
            key,
            value_size,
            value,
            header_bytes,
        )
    )


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [write_varint(len(headers))]
    for key, value in headers:
        encoded = key.encode("utf-8", HEADER_KEY_ERRORS)
        parts += (write_varint(len(encoded)), encoded)
        parts += (_NULL,) if value is None else (write_varint(len(value)), value)
    return b"".join(parts)


_NULL: Final = write_varint(-1)
_SMALL_COUNT: Final = 64
_SMALL: Final = tuple(map(write_varint, range(_SMALL_COUNT)))
"""The varints of one byte."""
_NO_ATTRIBUTES: Final = b"\x00"
