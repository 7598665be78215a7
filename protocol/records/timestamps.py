"""The largest timestamp of a batch's records, read without reading the records.

A walk over sizes and timestamps alone takes half the time of `summarize` (0.2 to 0.3 µs a record, CPython 3.11). Other
fields are not checked: bytes that are no records may be accepted, and the only error is `InvalidRecordError`.
"""

from __future__ import annotations

from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64, NO_TIMESTAMP
from odradek.protocol.records.record_fields import long_varlong


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


_TOO_EARLY = (1 << 65) + 1
