from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.errors import CorruptRecordError, InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_walks import RecordsSummary, read_keys, read_records, summarize
from tests.support.wire.record_bytes import ONE, ONE_BYTES, damaged_records, encoded, raw_record, read
from tests.support.wire.record_strategies import T, spaced_records


@given(spaced_records())
def test_keys_and_summary_agree_with_the_records(sample: tuple[int, list[Record]]) -> None:
    base_offset, records = sample
    base_timestamp = records[0].timestamp
    data = encoded(*records, base_offset=base_offset, base_timestamp=base_timestamp)

    spans = read_keys(data, len(records))
    assert [(base_offset + offset, base_timestamp + time, key, full) for offset, time, key, full, _, _ in spans] == [
        (r.offset, r.timestamp, r.key, r.value is not None) for r in records
    ]
    assert b"".join(data[start:end] for *_, start, end in spans) == data

    latest = max(records, key=lambda record: record.timestamp)
    dated = [record.timestamp for record in records if record.timestamp != -1]
    assert summarize(data, len(records), base_timestamp) == RecordsSummary(
        record_count=len(records),
        max_timestamp=latest.timestamp,
        offset_delta_of_max_timestamp=latest.offset - base_offset,
        min_timestamp=min(dated, default=-1),
        has_sequential_offsets=[r.offset for r in records] == list(range(base_offset, base_offset + len(records))),
        keyless=sum(record.key is None for record in records),
    )


def walk_outcomes(data: bytes, count: int) -> tuple[list[Record] | None, RecordsSummary | None]:
    """Both walks; None where one refuses with the error it may raise."""
    records: list[Record] | None = None
    summary: RecordsSummary | None = None
    with suppress(InvalidRecordError):
        records = read(data, count)
    with suppress(InvalidRecordError):
        summary = summarize(data, count, T)
    try:
        for *_, start, end in read_keys(data, count):
            assert 0 <= start < end <= len(data)
    except InvalidRecordError:
        assert records is None, "a walk that looks at less must not refuse more"
    return records, summary


@given(st.binary(max_size=60), st.integers(1, 4))
def test_random_bytes_raise_nothing_else_and_all_walks_agree(data: bytes, count: int) -> None:
    records, summary = walk_outcomes(data, count)
    assert (records is None) == (summary is None)


@given(damaged_records())
def test_damaged_bytes_raise_nothing_else_and_all_walks_agree(damaged: tuple[int, bytes]) -> None:
    count, data = damaged
    got, summary = walk_outcomes(data, count)
    assert (got is None) == (summary is None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ONE_BYTES[:-1],
        raw_record(ONE_BYTES[1:], size=9),
        raw_record(ONE_BYTES[1:], size=7),
        raw_record(ONE_BYTES[1:], size=-1),
        raw_record(b""),
        b"\xff\xff\xff\xff\xff\x7f" + ONE_BYTES,
        raw_record(b"\x00\x00\x00" + write_varint(1000) + b"k" + b"\x02v" + b"\x00"),
        raw_record(b"\x00\x00\x00" + b"\x02k" + write_varint(2**31 - 1) + b"v" + b"\x00"),
        raw_record(b"\x00\x00\x00" + b"\x02k\x02v" + write_varint(-1)),
        raw_record(b"\x00\x00\x00" + b"\x02k\x02v" + write_varint(50)),
        raw_record(b"\x00\x00\x00" + b"\x02k\x02v" + b"\x02" + write_varint(-1) + b"\x00"),
        raw_record(b"\x00\x00\x00" + b"\x02k\x02v" + b"\x02" + b"\x02h" + write_varint(100)),
        raw_record(b"\x00\x00\x00" + b"\x02k\x02v" + b"\x00" + b"?"),
        ONE_BYTES + b"?",
    ],
    ids=[
        "no bytes",
        "truncated",
        "size too large",
        "size too small",
        "negative size",
        "empty record",
        "endless varint",
        "key beyond the record",
        "value beyond the record",
        "negative header count",
        "header count beyond the record",
        "null header key",
        "header value beyond the record",
        "bytes behind the headers",
        "bytes behind the last record",
    ],
)
def test_contradictions_are_invalid_records(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        read(data, 1)
    with pytest.raises(InvalidRecordError):
        summarize(data, 1, T)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ONE_BYTES[:-1],
        ONE_BYTES + b"?",
        raw_record(ONE_BYTES[1:5]),
        raw_record(b"\x00\x00\x00" + write_varint(5) + b"k"),
    ],
    ids=["no bytes", "truncated", "bytes behind the last record", "no value", "key beyond the record"],
)
def test_walk_over_keys_refuses_invalid_sizes_and_keys(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        read_keys(data, 1)


def test_key_that_reaches_into_the_next_record_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="Invalid record size"):
        read_keys(raw_record(b"\x00\x00\x00" + write_varint(5) + b"k") + ONE_BYTES, 2)


def test_the_last_record_comes_only_when_nothing_follows_it() -> None:
    two = encoded(ONE, ONE._replace(offset=1))
    walk = read_records(two + b"?", 2, 0, T, -1, None)
    assert next(walk) == ONE
    with pytest.raises(InvalidRecordError, match="1 bytes remain"):
        next(walk)


@pytest.mark.parametrize("size", [63, 64, 8191, 8192, 70_000])
def test_lengths_at_the_borders_of_varints(size: int) -> None:
    record = Record(size, T + size, bytes(size), bytes(size), (("h" * size, bytes(size)),))
    data = encoded(record)
    assert read(data, 1) == [record]
    assert read_keys(data, 1) == [(size, size, bytes(size), True, 0, len(data))]
    assert summarize(data, 1, T).max_timestamp == T + size


def test_log_append_time_takes_the_place_of_every_timestamp() -> None:
    data = encoded(ONE, ONE._replace(offset=1, timestamp=T + 9))
    assert [record.timestamp for record in read_records(data, 2, 0, T, -1, T + 500)] == [T + 500, T + 500]


def test_sequences_follow_offset_deltas_and_wrap() -> None:
    data = encoded(ONE, ONE._replace(offset=1), ONE._replace(offset=3))
    assert [record.sequence for record in read_records(data, 3, 0, T, 2**31 - 2, None)] == [2**31 - 2, 2**31 - 1, 1]


def test_largest_timestamps_are_read() -> None:
    records = [Record(0, 0, None, None), Record(1, MAX_INT64, None, None)]
    assert read(encoded(*records, base_timestamp=0), 2, base_timestamp=0) == records
    records = [Record(0, MAX_INT64, None, None)]
    assert read(encoded(*records, base_timestamp=MAX_INT64), 1, base_timestamp=MAX_INT64) == records


def test_summary_of_no_records() -> None:
    assert summarize(b"", 0, T) == RecordsSummary(0, -1, -1, -1, True, 0)


def test_records_without_timestamp_do_not_count_for_the_minimum() -> None:
    data = encoded(Record(0, -1, None, None), Record(1, 5, None, None), base_timestamp=-1)
    summary = summarize(data, 2, -1)
    assert (summary.min_timestamp, summary.max_timestamp) == (5, 5)


def test_invalid_records_are_corrupt_records() -> None:
    assert issubclass(InvalidRecordError, CorruptRecordError)
