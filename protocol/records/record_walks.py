"""Walks over the records of a batch of magic 2.

`read_records` builds values; `summarize` builds nothing and refuses the same bytes; `read_keys` looks no further than
the key. All of them raise `InvalidRecordError`.

They take `bytes`, never a memoryview: indexing and slicing are twice as fast, and a copy of 16 KB costs 1 µs. Reading
past the end of the bytes shows up as IndexError, and past the end of a record as a position behind that end, so there
is no check per field. Varints of one and two bytes (up to 63 and 8191) are read in line, because nearly all are that
short and a call for each doubles the time. That is why the same lines stand in each walk.

Kafka: the iterators of DefaultRecordBatch, DefaultRecord.readFrom and PartialDefaultRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from odradek.protocol.records.layout import MAX_INT32, NO_SEQUENCE, NO_TIMESTAMP
from odradek.protocol.records.record import Headers, Record
from odradek.protocol.records.record_fields import (
    bytes_remain,
    checked,
    does_not_fit,
    ends_early,
    long_varint,
    long_varlong,
    read_headers,
    size_differs,
    skip_headers,
)

KeyedSpan: TypeAlias = tuple[int, int, bytes | None, bool, int, int]
"""A record for compaction: offset delta, timestamp delta, key, whether it has a value, and where it begins
and ends, to copy it as it is. A bare tuple, because making a NamedTuple costs as much as reading a field or two."""


class RecordsSummary(NamedTuple):
    """What a validator has to know of records that it does not change. Timestamps are those of the records."""

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


_new = tuple.__new__  # half the price of a NamedTuple's own constructor
_SAFE_TIMESTAMP: Final = 1 << 62
_SAFE_DELTA: Final = 1 << 62
"""A base timestamp and a zig-zag delta below these cannot leave 64 bits together, and need no check."""
_NO_DELTA: Final = (1 << 64, -1 << 64)


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
                    size, position = long_varint(data, position, size)
            body_end = position + (size >> 1)
            if size & 1 or body_end > end:
                raise does_not_fit(size, end - position)
            position += 1  # attributes
            delta = data[position]
            position += 1
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = long_varlong(data, position)
                    substitute = substitute or delta > _SAFE_DELTA
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
            offset_delta = data[position]
            position += 1
            if offset_delta >= 0x80:
                if (more := data[position]) < 0x80:
                    offset_delta += (more << 7) - 0x80
                    position += 1
                else:
                    offset_delta, position = long_varint(data, position, offset_delta)
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = long_varint(data, position, length)
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
                    length, position = long_varint(data, position, length)
            if not length & 1:
                value_start = position
                position += length >> 1
                value = data[value_start:position]
            headers: Headers = ()
            if data[position]:
                headers, position = read_headers(data, position, body_end)
            else:
                position += 1
        except (IndexError, ValueError):
            raise ends_early() from None
        if position != body_end:
            raise size_differs(size >> 1, position - body_end)
        if not left and position != end:
            raise bytes_remain(end - position)
        if substitute:
            timestamp = checked(timestamp) if log_append_time is None else log_append_time
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
                size, position = long_varint(data, position + 1, size)
                position += 1
            body_end = position + (size >> 1) - 1
            if size & 1 or body_end > end:
                raise does_not_fit(size, end - position + 1)
            delta = data[position]
            if delta < 0x80:
                position += 1
            elif (more := data[position + 1]) < 0x80:
                delta += (more << 7) - 0x80
                position += 2
            else:
                delta, position = long_varlong(data, position + 1)
            offset_delta = data[position]
            if offset_delta < 0x80:
                position += 1
            elif (more := data[position + 1]) < 0x80:
                offset_delta += (more << 7) - 0x80
                position += 2
            else:
                offset_delta, position = long_varint(data, position + 1, offset_delta)
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = long_varint(data, position, length)
            if length & 1:
                key = None
            else:
                key_start = position
                position += length >> 1
                key = data[key_start:position]
            # The sign of a zig-zag number is bit 0 of its first byte: no need to decode the value's length.
            has_value = not data[position] & 1
        except (IndexError, ValueError):
            raise ends_early() from None
        if position >= body_end:
            raise size_differs(size >> 1, position - body_end + 1)
        position = body_end
        offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        add((offset_delta, (delta >> 1) ^ -(delta & 1), key, has_value, start, body_end))
    if position != end:
        raise bytes_remain(end - position)
    return spans


def summarize(  # noqa: C901 - as read_records
    data: bytes, count: int, base_timestamp: int, headers_max: int = MAX_INT32
) -> RecordsSummary:
    """Walk all records and build none. Refuses what `read_records` refuses.

    Raises: LongHeadersError when the records have more than `headers_max` headers together.
    """
    position = keyless = 0
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
                    size, position = long_varint(data, position, size)
            body_end = position + (size >> 1)
            if size & 1 or body_end > end:
                raise does_not_fit(size, end - position)
            position += 1  # attributes
            delta = data[position]
            position += 1
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = long_varlong(data, position)
            delta = (delta >> 1) ^ -(delta & 1)
            offset_delta = data[position]
            position += 1
            if offset_delta >= 0x80:
                if (more := data[position]) < 0x80:
                    offset_delta += (more << 7) - 0x80
                    position += 1
                else:
                    offset_delta, position = long_varint(data, position, offset_delta)
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
                    length, position = long_varint(data, position, length)
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
                    length, position = long_varint(data, position, length)
            if not length & 1:
                position += length >> 1
            if data[position]:
                headers, position = skip_headers(data, position, body_end, headers_max)
                headers_max -= headers
            else:
                position += 1
        except (IndexError, ValueError):
            raise ends_early() from None
        if position != body_end:
            raise size_differs(size >> 1, position - body_end)
    if count and position != end:
        raise bytes_remain(end - position)
    max_timestamp = checked(base_timestamp + max_delta) if count else NO_TIMESTAMP
    min_timestamp = checked(base_timestamp + min_delta) if min_delta != _NO_DELTA[0] else NO_TIMESTAMP
    return RecordsSummary(count, max_timestamp, first_of_max, min_timestamp, sequential, keyless)
