"""The walk that looks at timestamps alone finds what the walk over everything finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.errors import DecompressedSizeError, InvalidRecordError
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME, MAX_INT64, TIMESTAMP_TYPE_MASK
from odradek.protocol.records.legacy import LegacyBatch, build_message
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_walks import summarize
from odradek.protocol.records.timestamps import first_record_since, largest_timestamp, latest_record
from tests.support.wire.record_bytes import encoded
from tests.support.wire.record_strategies import T, spaced_records


@given(spaced_records(), st.integers(-5, 5) | st.sampled_from([T, -T]))
def test_largest_timestamp_is_that_of_the_full_walk(sample: tuple[int, list[Record]], shift: int) -> None:
    base_offset, records = sample
    base_timestamp = records[0].timestamp + shift
    if any(abs(record.timestamp - base_timestamp) > MAX_INT64 for record in records):
        return
    data = encoded(*records, base_offset=base_offset, base_timestamp=base_timestamp)
    full = summarize(data, len(records), base_timestamp).max_timestamp
    assert largest_timestamp(data, len(records), base_timestamp) == max(-1, full)


def test_only_the_first_ones_are_looked_at() -> None:
    records = [Record(index, T + index, None, b"v") for index in range(5)]
    assert largest_timestamp(encoded(*records), 3, T) == T + 2


@given(st.binary(max_size=60), st.integers(1, 4), st.sampled_from([0, T, MAX_INT64, -MAX_INT64]))
def test_random_bytes_raise_nothing_else(data: bytes, count: int, base_timestamp: int) -> None:
    try:
        found = largest_timestamp(data, count, base_timestamp)
    except InvalidRecordError:
        return
    assert -1 <= found <= MAX_INT64


@pytest.mark.parametrize("cut", range(1, 9))
def test_records_that_end_early_are_refused(cut: int) -> None:
    data = encoded(Record(0, T, b"k", b"v"))
    with pytest.raises(InvalidRecordError):
        largest_timestamp(data[:-cut], 1, T)


@given(
    spaced_records(),
    st.sampled_from(CompressionType),
    st.sampled_from([CREATE_TIME, LOG_APPEND_TIME]),
    st.integers(0, 8),
    st.integers(-1, 1),
    st.integers(-1, 10),
)
def test_the_first_record_since_is_that_of_a_look_at_all(
    sample: tuple[int, list[Record]], codec: CompressionType, timestamp_type: int, index: int, more: int, skipped: int
) -> None:
    base_offset, records = sample
    base_timestamp = records[0].timestamp
    if any(abs(record.timestamp - base_timestamp) > MAX_INT64 for record in records):
        return
    data = encoded(*records, base_offset=base_offset, base_timestamp=base_timestamp)
    whole = assemble_batch(
        compress(codec, data),
        base_offset=base_offset,
        last_offset_delta=records[-1].offset - base_offset,
        record_count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        attributes=codec | (timestamp_type and TIMESTAMP_TYPE_MASK),
    )
    batch = RecordBatch(memoryview(whole))
    timestamp, start = records[index % len(records)].timestamp + more, base_offset + skipped
    expected = next((r for r in batch.records() if r.timestamp >= timestamp and r.offset >= start), None)
    assert first_record_since(batch, timestamp, start) == (expected and (expected.timestamp, expected.offset))
    latest = max(batch.records(), key=lambda record: record.timestamp)
    assert latest_record(batch) == (latest.timestamp, latest.offset)


@given(st.binary(max_size=60), st.integers(-1, 4), st.integers(-3, 3), st.integers(-3, 3))
def test_random_bytes_have_no_first_record_or_are_refused(data: bytes, count: int, timestamp: int, offset: int) -> None:
    zeros = dict.fromkeys(("base_offset", "last_offset_delta", "base_timestamp", "max_timestamp", "attributes"), 0)
    whole = assemble_batch(data, record_count=count, **zeros)
    try:
        found = first_record_since(RecordBatch(memoryview(whole)), timestamp, offset)
    except InvalidRecordError:
        return
    assert found is None or (timestamp <= found[0] <= MAX_INT64 and offset <= found[1])


def test_the_first_message_since_of_an_old_format() -> None:
    batch = LegacyBatch(memoryview(build_message(1, 7, T, b"k", b"v")))
    assert first_record_since(batch, T, 7) == (T, 7)
    assert first_record_since(batch, T + 1, 7) is None
    assert first_record_since(batch, T, 8) is None
    assert latest_record(batch) == (T, 7)


def test_the_latest_message_of_a_wrapper() -> None:
    inner = b"".join(build_message(1, offset, T + offset % 2, b"k", b"v") for offset in range(4))
    packed = build_message(1, 13, T + 1, None, compress(CompressionType.GZIP, inner), compression_type=1)
    assert latest_record(LegacyBatch(memoryview(packed))) == (T + 1, 11)


def test_no_more_is_decompressed_than_allowed() -> None:
    data = encoded(Record(0, T, b"k", b"v"))
    fields = {"record_count": 1, "base_offset": 0, "last_offset_delta": 0, "max_timestamp": T, "attributes": 1}
    batch = RecordBatch(memoryview(assemble_batch(compress(1, data), base_timestamp=T, **fields)))
    assert latest_record(batch, len(data)) == first_record_since(batch, T, 0, len(data)) == (T, 0)
    with pytest.raises(DecompressedSizeError):
        latest_record(batch, len(data) - 1)
    with pytest.raises(DecompressedSizeError):
        first_record_since(batch, T, 0, len(data) - 1)
