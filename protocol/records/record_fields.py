"""What the walks over records leave to a call because it is rare: long varints, headers, and the errors.

Kafka: DefaultRecord.readHeaders and ByteUtils.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.codec.varint import read_varlong
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import HEADER_KEY_ERRORS, Headers

MAX_HEADERS: Final = 100_000
"""Of one record. A header takes two bytes but fifty times as many as a value; Kafka knows no limit."""


def long_varint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """The zig-zag bits of a varint whose first byte has been read and is not the last.

    Not the reader of `varint`, which refuses what does not fit into 32 bits: in records Kafka drops those bits, and
    what it has accepted must stay readable.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
    raise ValueError("varint is longer than 5 bytes")


def long_varlong(data: bytes, position: int) -> tuple[int, int]:
    delta, position = read_varlong(data, position - 1)
    return delta << 1 if delta >= 0 else (-delta << 1) - 1, position


def _header_count(data: bytes, position: int, end: int) -> tuple[int, int]:
    count = data[position]
    position += 1
    if count >= 0x80:
        count, position = long_varint(data, position, count)
    count = (count >> 1) ^ -(count & 1)
    if count < 0 or count > end - position or count > MAX_HEADERS:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    return count, position


class LongHeadersError(Exception):
    """There are more headers than the caller reads. Not an error of the records."""


def skip_headers(data: bytes, position: int, end: int, most: int) -> tuple[int, int]:
    """The number of headers, and the position behind them. Raises: LongHeadersError if there are more than `most`."""
    count, position = _header_count(data, position, end)
    if count > most:
        raise LongHeadersError
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = long_varint(data, position, size)
        if size & 1:
            raise null_header_key(size)
        position += size >> 1
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = long_varint(data, position, size)
        if not size & 1:
            position += size >> 1
    return count, position


def read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = _header_count(data, position, end)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = long_varint(data, position, size)
        if size & 1:
            raise null_header_key(size)
        key_end = position + (size >> 1)
        key = data[position:key_end].decode("utf-8", HEADER_KEY_ERRORS)
        size = data[key_end]
        position = key_end + 1
        if size >= 0x80:
            size, position = long_varint(data, position, size)
        value = None
        if not size & 1:
            value_start = position
            position += size >> 1
            value = data[value_start:position]
        headers.append((key, value))
    return tuple(headers), position


def checked(timestamp: int) -> int:
    if not -MAX_INT64 <= timestamp <= MAX_INT64:
        raise InvalidRecordError(f"The record timestamp {timestamp} does not fit into 64 bits")
    return timestamp


def ends_early() -> InvalidRecordError:
    return InvalidRecordError("Incorrect declared batch size, premature EOF reached")


def does_not_fit(size: int, remaining: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected {(size >> 1) ^ -(size & 1)} bytes in record payload, but "
        f"only {remaining} remain"
    )


def null_header_key(size: int) -> InvalidRecordError:
    return InvalidRecordError(f"Invalid negative header key size {(size >> 1) ^ -(size & 1)}")


def size_differs(size: int, excess: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected to read {size} bytes in record payload, but instead read {size + excess}"
    )


def bytes_remain(remaining: int) -> InvalidRecordError:
    return InvalidRecordError(f"Incorrect declared batch size, {remaining} bytes remain behind the last record")
