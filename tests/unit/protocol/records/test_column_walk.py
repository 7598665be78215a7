from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.column_walk import RecordColumns, read_columns
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import Record
from tests.support.wire.record_bytes import ONE_BYTES, damaged_records, encoded, read
from tests.support.wire.record_strategies import T, spaced_records

ALL = 1_000_000


def columns(
    data: bytes, count: int, *, base_offset: int = 0, base_timestamp: int = T, max_rows: int = ALL, around: bytes = b""
) -> list[RecordColumns]:
    """The columns of records that stand between other bytes."""
    start, end = len(around), len(around) + len(data)
    buffer = around + data + around
    return list(read_columns(buffer, start, end, count, base_offset, base_timestamp, None, max_rows))


def rows(parts: list[RecordColumns]) -> list[Record]:
    return [
        Record(offset, timestamp, key, value, headers)
        for part in parts
        for offset, timestamp, key, value, headers in zip(
            *part[:4], part.headers or [()] * len(part.offsets), strict=True
        )
    ]


@given(spaced_records(), st.sampled_from([b"", b"\x00" * 9, ONE_BYTES * 3]), st.sampled_from([1, 2, ALL]))
def test_columns_are_the_fields_of_the_records(sample: tuple[int, list[Record]], around: bytes, max_rows: int) -> None:
    base_offset, records = sample
    base_timestamp = records[0].timestamp
    data = encoded(*records, base_offset=base_offset, base_timestamp=base_timestamp)
    found = columns(
        data, len(records), base_offset=base_offset, base_timestamp=base_timestamp, max_rows=max_rows, around=around
    )
    assert rows(found) == read(data, len(records), base_offset=base_offset, base_timestamp=base_timestamp)
    assert sum(sum(part.sizes) for part in found) == len(data)
    assert all(len(part.offsets) <= max_rows for part in found)


def outcomes(data: bytes, count: int, base_timestamp: int = T) -> tuple[list[Record] | None, list[Record] | None]:
    """What both decoders make of bytes; None where one refuses them with the error that it may raise."""
    records: list[Record] | None = None
    found: list[Record] | None = None
    with suppress(InvalidRecordError):
        records = read(data, count, base_timestamp=base_timestamp)
    with suppress(InvalidRecordError):
        found = rows(columns(data, count, base_timestamp=base_timestamp, around=b"\x01" * 40))
    return records, found


@given(st.binary(max_size=60), st.integers(1, 4), st.sampled_from([T, MAX_INT64, -MAX_INT64]))
def test_random_bytes_are_read_or_refused_as_by_the_other_decoder(data: bytes, count: int, base_timestamp: int) -> None:
    records, found = outcomes(data, count, base_timestamp)
    assert records == found


@given(damaged_records())
def test_damaged_bytes_are_read_or_refused_as_by_the_other_decoder(damaged: tuple[int, bytes]) -> None:
    count, data = damaged
    expected, found = outcomes(data, count)
    assert expected == found


def test_the_time_of_an_append_is_that_of_each_record() -> None:
    (part,) = read_columns(ONE_BYTES * 2, 0, len(ONE_BYTES) * 2, 2, 0, 5, 99, ALL)
    assert part.timestamps == [99, 99]


def test_a_batch_that_comes_in_parts_is_checked_before_the_first_part() -> None:
    data = ONE_BYTES * 3
    with pytest.raises(InvalidRecordError):
        next(read_columns(data[:-1], 0, len(data) - 1, 3, 0, T, None, 1))


def test_times_beyond_64_bits_are_refused() -> None:
    late = encoded(Record(0, MAX_INT64, None, None), base_timestamp=MAX_INT64 - 5)
    assert rows(columns(late, 1, base_timestamp=MAX_INT64 - 5))[0].timestamp == MAX_INT64
    with pytest.raises(InvalidRecordError, match="does not fit into 64 bits"):
        columns(late, 1, base_timestamp=MAX_INT64 - 4)


def test_no_records_are_one_empty_part() -> None:
    assert [part.offsets for part in columns(b"", 0)] == [[]]
