"""A walk over the records of a batch of magic 2 that returns columns instead of values.

For readers that take whole batches, such as a table of Arrow columns: one list for each field costs less than one value
for each record. It refuses the bytes that `read_records` refuses, with the same errors, and its columns are the fields
of the same records (a property test holds both).

It reads from the middle of a buffer, so that the batches of a chunk of a file need no copies. What `record_walks.py`
says about varints in line holds here too.

Kafka: DefaultRecordBatch.iterator and DefaultRecord.readFrom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import Headers
from odradek.protocol.records.record_fields import (
    bytes_remain,
    checked,
    does_not_fit,
    ends_early,
    long_varint,
    long_varlong,
    read_headers,
    size_differs,
)
from odradek.protocol.records.record_walks import summarize


class RecordColumns(NamedTuple):
    """The fields of the records of one batch; all lists have one element for each record."""

    offsets: list[int]
    timestamps: list[int]
    """Milliseconds. With LogAppendTime all are that time."""
    keys: list[bytes | None]
    values: list[bytes | None]
    sizes: list[int]
    """Bytes of each record without compression, with the varint of its length. Kafka: Record.sizeInBytes."""
    headers: list[Headers] | None
    """None if no record has headers."""


def read_columns(
    data: bytes,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None,
    max_rows: int,
) -> Iterator[RecordColumns]:
    """The `count` records in `data[position:end]`, uncompressed, up to `max_rows` at a time.

    A batch with a few bytes for each record may have millions of them: no more than `max_rows` are in memory. If there
    are more, all of them are checked before the first come.

    Raises: InvalidRecordError for bytes that are not exactly these records.
    """
    if count > max_rows:
        summarize(data[position:end], count, base_timestamp)
    while True:
        rows = min(count, max_rows)
        columns, position = _walk(data, position, end, rows, base_offset, base_timestamp, log_append_time)
        count -= rows
        if rows and not count and position != end:
            raise bytes_remain(end - position)
        yield columns
        if not count:
            return


def _walk(  # noqa: C901 - one field after the other, as in read_records
    data: bytes, position: int, end: int, count: int, base_offset: int, base_timestamp: int, log_append_time: int | None
) -> tuple[RecordColumns, int]:
    """The next `count` records, and where they end."""
    columns = RecordColumns([], [], [], [], [], None)
    add_offset, add_timestamp, add_key = columns.offsets.append, columns.timestamps.append, columns.keys.append
    add_value, add_size = columns.values.append, columns.sizes.append
    headers: list[tuple[int, Headers]] = []
    safe = -MAX_INT64 // 2 < base_timestamp < MAX_INT64 // 2
    for _ in range(count):
        start = position
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
            delta = data[position + 1]  # behind the attributes
            position += 2
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = long_varlong(data, position)
                    safe = False
            add_timestamp(base_timestamp + ((delta >> 1) ^ -(delta & 1)))
            delta = data[position]
            position += 1
            if delta >= 0x80:
                if (more := data[position]) < 0x80:
                    delta += (more << 7) - 0x80
                    position += 1
                else:
                    delta, position = long_varint(data, position, delta)
            add_offset(base_offset + ((delta >> 1) ^ -(delta & 1)))
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = long_varint(data, position, length)
            if length & 1:
                add_key(None)
            else:
                key_end = position + (length >> 1)
                add_key(data[position:key_end])
                position = key_end
            length = data[position]
            position += 1
            if length >= 0x80:
                if (more := data[position]) < 0x80:
                    length += (more << 7) - 0x80
                    position += 1
                else:
                    length, position = long_varint(data, position, length)
            if length & 1:
                add_value(None)
            else:
                value_end = position + (length >> 1)
                add_value(data[position:value_end])
                position = value_end
            if data[position]:
                found, position = read_headers(data, position, body_end)
                if found:
                    headers.append((len(columns.sizes), found))
            else:
                position += 1
        except (IndexError, ValueError):
            raise ends_early() from None
        if position != body_end:
            raise size_differs(size >> 1, position - body_end)
        add_size(body_end - start)
    timestamps = columns.timestamps if log_append_time is None else [log_append_time] * count
    if not safe and log_append_time is None:
        list(map(checked, timestamps))
    return columns._replace(timestamps=timestamps, headers=_by_row(headers, count)), position


def _by_row(found: list[tuple[int, Headers]], count: int) -> list[Headers] | None:
    if not found:
        return None
    rows: list[Headers] = [()] * count
    for row, headers in found:
        rows[row] = headers
    return rows
