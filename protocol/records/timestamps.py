"""The timestamps of a batch's records, read without reading the records.

A walk over sizes and timestamps alone takes half the time of `summarize` (0.2 to 0.3 µs a record, CPython 3.11). Other
fields are not checked: bytes that are no records may be accepted, and the only error is `InvalidRecordError`. Short
varints are read in line, as in `record_walks`.
"""

from __future__ import annotations

from operator import attrgetter

from odradek.protocol.records.batch import AnyBatch, LegacyBatch
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import CREATE_TIME, MAX_DECOMPRESSED_BYTES, MAX_INT64, NO_TIMESTAMP
from odradek.protocol.records.record_fields import checked, does_not_fit, ends_early, long_varint, long_varlong


def largest_timestamp(data: bytes, count: int, base_timestamp: int) -> int:
    """Of the first `count` records in `data`, uncompressed; NO_TIMESTAMP when none has one that is not negative.

    Raises: InvalidRecordError when `data` ends within them.
    """
    position = 0
    end = len(data)
    latest, least_early = -1, _TOO_EARLY  # zig-zag: deltas above 0 are even and grow, those below are odd
    try:
        for _ in range(count):
            size = data[position]
            position += 1
            if size >= 0x80:
                if (more := data[position]) < 0x80:
                    size += (more << 7) - 0x80
                    position += 1
                else:
                    size, position = long_varlong(data, position)
            delta = data[position + 1]
            if delta >= 0x80:
                if (more := data[position + 2]) < 0x80:
                    delta += (more << 7) - 0x80
                else:
                    delta, _ = long_varlong(data, position + 2)
            if delta & 1:
                if delta < least_early:
                    least_early = delta
            elif delta > latest:
                latest = delta
            position += size >> 1
            if size & 1 or position > end:
                raise InvalidRecordError(f"Invalid record size: expected {size >> 1} bytes of {end}")
    except (IndexError, ValueError):
        raise InvalidRecordError("Incorrect declared batch size, premature EOF reached") from None
    timestamp = base_timestamp + (latest >> 1 if latest >= 0 else -(least_early >> 1) - 1)
    if timestamp > MAX_INT64:
        raise InvalidRecordError(f"The record timestamp {timestamp} does not fit into 64 bits")
    return max(NO_TIMESTAMP, timestamp)


def first_record_since(
    batch: AnyBatch, timestamp: int, starting_offset: int, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record from `starting_offset` on with this timestamp (ms) or a later one.

    Raises: CorruptRecordError when the records cannot be read up to there.
    """
    if isinstance(batch, LegacyBatch):
        for record in batch.records(max_decompressed_bytes):
            if record.timestamp >= timestamp and record.offset >= starting_offset:
                return record.timestamp, record.offset
        return None
    data, count = batch.record_bytes(max_decompressed_bytes), batch.checked_count()
    base_timestamp, base_offset = batch.base_timestamp, batch.base_offset
    if batch.timestamp_type == CREATE_TIME:
        deltas = _first_since(data, count, timestamp - base_timestamp, starting_offset - base_offset)
        return None if deltas is None else (checked(base_timestamp + deltas[0]), base_offset + deltas[1])
    if batch.max_timestamp < timestamp:
        return None
    deltas = _first_since(data, count, _ANY, starting_offset - base_offset)
    return None if deltas is None else (batch.max_timestamp, base_offset + deltas[1])


def latest_record(batch: AnyBatch, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> tuple[int, int] | None:
    """Timestamp and offset of the first record with the largest timestamp; None without records.

    Raises: CorruptRecordError when the records cannot be read.
    """
    if isinstance(batch, LegacyBatch):
        latest = max(batch.records(max_decompressed_bytes), key=attrgetter("timestamp"))
        return latest.timestamp, latest.offset
    if batch.timestamp_type != CREATE_TIME:
        return first_record_since(batch, batch.max_timestamp, batch.base_offset, max_decompressed_bytes)
    data, count = batch.record_bytes(max_decompressed_bytes), batch.checked_count()
    timestamp = largest_timestamp(data, count, batch.base_timestamp)
    deltas = _first_since(data, count, timestamp - batch.base_timestamp, _ANY)
    return None if deltas is None else (timestamp, batch.base_offset + deltas[1])


def _first_since(data: bytes, count: int, timestamp_delta: int, offset_delta: int) -> tuple[int, int] | None:
    """The timestamp and offset delta of the first record in `data` for which both are at least as large as these."""
    position = 0
    end = len(data)
    try:
        for _ in range(count):
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
            delta = data[position + 1]
            position += 2
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = long_varlong(data, position)
            delta = (delta >> 1) ^ -(delta & 1)
            if delta >= timestamp_delta:
                offset = data[position]
                if offset >= 0x80:
                    offset, _ = long_varint(data, position + 1, offset)
                offset = (offset >> 1) ^ -(offset & 1)
                if offset >= offset_delta:
                    return delta, offset
            position = body_end
    except (IndexError, ValueError):
        raise ends_early() from None
    return None


_TOO_EARLY = (1 << 65) + 1
_ANY = -(1 << 65)
"""Below every timestamp delta."""
