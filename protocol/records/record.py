"""Records of magic 2: the values, their bytes, and the walks over the bytes of a batch.

    length varint | attributes i8 | timestamp delta varlong | offset delta varint | key length varint | key
    | value length varint | value | header count varint | {key length varint | key | value length varint | value}*

Length excludes itself; a length of -1 is null. Kafka: `DefaultRecord` and the iterators of `DefaultRecordBatch`.

Walks take `bytes`, never a memoryview: indexing and slicing are twice as fast, and a copy of 16 KB costs 1 µs. They
raise `InvalidRecordError`. `read_records` builds values; `summarize` builds nothing and refuses the same bytes;
`read_keys` looks no further than the key. Reading past the end of the bytes shows up as IndexError, and past the end of
a record as a position behind that end, so there is no check per field. Varints of one and two bytes (up to 63 and 8191)
are read in line, for nearly all are; a call each doubles the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from odradek.protocol.codec.varint import read_varlong, write_varint
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import COMPRESSION_MASK, MAX_INT32, MAX_INT64, NO_SEQUENCE, NO_TIMESTAMP

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

HEADER_KEY_ERRORS: Final = "surrogateescape"
"""Header keys are UTF-8 by definition; whatever else a client sent survives a rebuilt batch byte for byte."""

MAX_HEADERS: Final = 100_000
"""Of one record. A header takes two bytes but fifty times as many as a value; Kafka knows no limit."""


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


KeyedSpan: TypeAlias = tuple[int, int, bytes | None, bool, int, int]
"""What compaction needs of a record: offset delta, timestamp delta, key, whether it has a value, and where it begins
and ends, to copy it as it is. A bare tuple, because making a NamedTuple costs as much as reading a field or two."""


class RecordsSummary(NamedTuple):
    """What a validator needs of a batch whose records it leaves as they are. Timestamps are those of the records."""

    record_count: int
    max_timestamp: int
    offset_delta_of_max_timestamp: int
    """Of the first record that has it; -1 without records."""
    min_timestamp: int
    """Of the records that have one (-1 is none)."""
    has_sequential_offsets: bool
    """Offset deltas are 0, 1, 2, ..."""
    keyless: int
    """How many records have no key."""
    compressed_attribute: bool
    """A record claims to be compressed itself."""


def append_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """Append one record."""
    key_size = _NULL if key is None else write_varint(len(key))
    value_size = _NULL if value is None else write_varint(len(value))
    timestamp_bytes = write_varint(timestamp_delta)
    offset_bytes = write_varint(offset_delta)
    header_bytes = _encode_headers(headers) if headers else b"\x00"
    key = key or b""
    value = value or b""
    size = 1 + len(timestamp_bytes) + len(offset_bytes) + len(key_size) + len(key) + len(value_size) + len(value)
    size += len(header_bytes)
    out += b"".join(
        (
            write_varint(size),
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


_new = tuple.__new__  # half the price of a NamedTuple's own constructor
_NULL: Final = write_varint(-1)
_NO_ATTRIBUTES: Final = b"\x00"


def read_records(  # noqa: C901 - one field after the other
    data: bytes, count: int, base_offset: int, base_timestamp: int, base_sequence: int, log_append_time: int | None
) -> Iterator[Record]:
    """The records of a batch. The last comes only when nothing follows it."""
    position = 0
    end = len(data)
    substitute = log_append_time is not None or not -_SAFE_TIMESTAMP < base_timestamp < _SAFE_TIMESTAMP
    for left in range(count - 1, -1, -1):
        try:
            size = data[position]
            position += 1
            if size >= 0x80:
                if (more := data[position]) < 0x80:
                    size += (more << 7) - 0x80
                    position += 1
                else:
                    size, position = _long_varint(data, position, size)
            body_end = position + (size >> 1)
            if size & 1 or body_end > end:
                raise _does_not_fit(size, end - position)
            position += 1  # attributes
            delta = data[position]
            position += 1
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = _long_varlong(data, position)
                    substitute = substitute or delta > _SAFE_DELTA
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
            offset_delta = data[position]
            position += 1
            if offset_delta >= 0x80:
                if (more := data[position]) < 0x80:
                    offset_delta += (more << 7) - 0x80
                    position += 1
                else:
                    offset_delta, position = _long_varint(data, position, offset_delta)
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = _long_varint(data, position, length)
            key = value = None
            if not length & 1:
                key_start = position
                position += length >> 1
                key = data[key_start:position]
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = _long_varint(data, position, length)
            if not length & 1:
                value_start = position
                position += length >> 1
                value = data[value_start:position]
            headers: Headers = ()
            if data[position]:
                headers, position = _read_headers(data, position, body_end)
            else:
                position += 1
        except (IndexError, ValueError):
            raise _ends_early() from None
        if position != body_end:
            raise _size_differs(size >> 1, position - body_end)
        if not left and position != end:
            raise _bytes_remain(end - position)
        if substitute:
            timestamp = _checked(timestamp) if log_append_time is None else log_append_time
        sequence = (base_sequence + offset_delta) & MAX_INT32 if base_sequence >= 0 else NO_SEQUENCE
        yield _new(Record, (base_offset + offset_delta, timestamp, key, value, headers, sequence))


def read_keys(data: bytes, count: int) -> list[KeyedSpan]:  # noqa: C901 - as read_records
    """Only the keys, for compaction. Value and headers are stepped over by the record's length and not looked at."""
    spans: list[KeyedSpan] = []
    add = spans.append
    position = 0
    end = len(data)
    for _ in range(count):
        start = position
        try:
            size = data[position]
            if size < 0x80:
                position += 2  # the attributes too
            elif (more := data[position + 1]) < 0x80:
                size += (more << 7) - 0x80
                position += 3
            else:
                size, position = _long_varint(data, position + 1, size)
                position += 1
            body_end = position + (size >> 1) - 1
            if size & 1 or body_end > end:
                raise _does_not_fit(size, end - position + 1)
            delta = data[position]
            if delta < 0x80:
                position += 1
            elif (more := data[position + 1]) < 0x80:
                delta += (more << 7) - 0x80
                position += 2
            else:
                delta, position = _long_varlong(data, position + 1)
            offset_delta = data[position]
            if offset_delta < 0x80:
                position += 1
            elif (more := data[position + 1]) < 0x80:
                offset_delta += (more << 7) - 0x80
                position += 2
            else:
                offset_delta, position = _long_varint(data, position + 1, offset_delta)
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = _long_varint(data, position, length)
            if length & 1:
                key = None
            else:
                key_start = position
                position += length >> 1
                key = data[key_start:position]
            # The sign of a zig-zag number is bit 0 of its first byte: no need to decode the value's length.
            has_value = not data[position] & 1
        except (IndexError, ValueError):
            raise _ends_early() from None
        if position >= body_end:
            raise _size_differs(size >> 1, position - body_end + 1)
        position = body_end
        offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        add((offset_delta, (delta >> 1) ^ -(delta & 1), key, has_value, start, body_end))
    if position != end:
        raise _bytes_remain(end - position)
    return spans


def summarize(data: bytes, count: int, base_timestamp: int) -> RecordsSummary:  # noqa: C901 - as read_records
    """Walk all records and build none. Refuses what `read_records` refuses."""
    position = attributes = keyless = 0
    end = len(data)
    min_delta, max_delta = _NO_DELTA
    first_of_max = -1
    no_timestamp = NO_TIMESTAMP - base_timestamp
    sequential = True
    for expected in range(count):
        try:
            size = data[position]
            position += 1
            if size >= 0x80:
                if (more := data[position]) < 0x80:
                    size += (more << 7) - 0x80
                    position += 1
                else:
                    size, position = _long_varint(data, position, size)
            body_end = position + (size >> 1)
            if size & 1 or body_end > end:
                raise _does_not_fit(size, end - position)
            attributes |= data[position]
            position += 1
            delta = data[position]
            position += 1
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = _long_varlong(data, position)
            delta = (delta >> 1) ^ -(delta & 1)
            offset_delta = data[position]
            position += 1
            if offset_delta >= 0x80:
                if (more := data[position]) < 0x80:
                    offset_delta += (more << 7) - 0x80
                    position += 1
                else:
                    offset_delta, position = _long_varint(data, position, offset_delta)
            if offset_delta != expected << 1:
                sequential = False
            if delta > max_delta:
                max_delta = delta
                first_of_max = (offset_delta >> 1) ^ -(offset_delta & 1)
            if delta < min_delta and delta != no_timestamp:
                min_delta = delta
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = _long_varint(data, position, length)
            if length & 1:
                keyless += 1
            else:
                position += length >> 1
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = _long_varint(data, position, length)
            if not length & 1:
                position += length >> 1
            if data[position]:
                position = _skip_headers(data, position, body_end)
            else:
                position += 1
        except (IndexError, ValueError):
            raise _ends_early() from None
        if position != body_end:
            raise _size_differs(size >> 1, position - body_end)
    if count and position != end:
        raise _bytes_remain(end - position)
    max_timestamp = _checked(base_timestamp + max_delta) if count else NO_TIMESTAMP
    min_timestamp = _checked(base_timestamp + min_delta) if min_delta != _NO_DELTA[0] else NO_TIMESTAMP
    return RecordsSummary(
        count, max_timestamp, first_of_max, min_timestamp, sequential, keyless, bool(attributes & COMPRESSION_MASK)
    )


_SAFE_TIMESTAMP: Final = 1 << 62
_SAFE_DELTA: Final = 1 << 62
"""A base timestamp and a zig-zag delta below these cannot leave 64 bits together, and need no check."""
_NO_DELTA: Final = (1 << 64, -1 << 64)


def _long_varint(data: bytes, position: int, first: int) -> tuple[int, int]:
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


def _long_varlong(data: bytes, position: int) -> tuple[int, int]:
    delta, position = read_varlong(data, position - 1)
    return delta << 1 if delta >= 0 else (-delta << 1) - 1, position


def _header_count(data: bytes, position: int, end: int) -> tuple[int, int]:
    count = data[position]
    position += 1
    if count >= 0x80:
        count, position = _long_varint(data, position, count)
    count = (count >> 1) ^ -(count & 1)
    if count < 0 or count > end - position or count > MAX_HEADERS:
        raise InvalidRecordError(f"Found invalid number of record headers {count}")
    return count, position


def _skip_headers(data: bytes, position: int, end: int) -> int:
    count, position = _header_count(data, position, end)
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = _long_varint(data, position, size)
        if size & 1:
            raise _null_header_key(size)
        position += size >> 1
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = _long_varint(data, position, size)
        if not size & 1:
            position += size >> 1
    return position


def _read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = _header_count(data, position, end)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= 0x80:
            size, position = _long_varint(data, position, size)
        if size & 1:
            raise _null_header_key(size)
        key_end = position + (size >> 1)
        key = data[position:key_end].decode("utf-8", HEADER_KEY_ERRORS)
        size = data[key_end]
        position = key_end + 1
        if size >= 0x80:
            size, position = _long_varint(data, position, size)
        value = None
        if not size & 1:
            value_start = position
            position += size >> 1
            value = data[value_start:position]
        headers.append((key, value))
    return tuple(headers), position


def _checked(timestamp: int) -> int:
    if not -MAX_INT64 <= timestamp <= MAX_INT64:
        raise InvalidRecordError(f"The record timestamp {timestamp} does not fit into 64 bits")
    return timestamp


def _ends_early() -> InvalidRecordError:
    return InvalidRecordError("Incorrect declared batch size, premature EOF reached")


def _does_not_fit(size: int, remaining: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected {(size >> 1) ^ -(size & 1)} bytes in record payload, but "
        f"only {remaining} remain"
    )


def _null_header_key(size: int) -> InvalidRecordError:
    return InvalidRecordError(f"Invalid negative header key size {(size >> 1) ^ -(size & 1)}")


def _size_differs(size: int, excess: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"Invalid record size: expected to read {size} bytes in record payload, but instead read {size + excess}"
    )


def _bytes_remain(remaining: int) -> InvalidRecordError:
    return InvalidRecordError(f"Incorrect declared batch size, {remaining} bytes remain behind the last record")
