from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch, build_batch, build_empty_batch, compute_attributes
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.wire.record_strategies import T

ONE = SimpleRecord(T, b"k", b"v")


def view(data: bytearray) -> RecordBatch:
    batch = RecordBatch(memoryview(data))
    batch.ensure_valid()
    return batch


def test_simple_records_count_up_and_records_keep_their_offsets() -> None:
    batch = view(build_batch([ONE, ONE, Record(109, T, b"k", None), ONE], base_offset=100))
    assert [record.offset for record in batch.records()] == [100, 101, 109, 110]
    assert (batch.last_offset_delta, batch.record_count) == (10, 4)


def test_first_record_may_lie_behind_the_base_offset() -> None:
    batch = view(build_batch([Record(105, T, b"k", b"v")], base_offset=100, last_offset=109))
    assert (batch.base_offset, batch.last_offset) == (100, 109)
    assert [record.offset for record in batch.records()] == [105]


def test_max_timestamp_is_the_largest_and_base_timestamp_the_first() -> None:
    batch = view(build_batch([SimpleRecord(t, None, None) for t in (T, T + 9, T - 9)]))
    assert (batch.base_timestamp, batch.max_timestamp) == (T, T + 9)


def test_batch_without_timestamps() -> None:
    batch = view(build_batch([SimpleRecord(-1, None, None)]))
    assert (batch.base_timestamp, batch.max_timestamp) == (-1, -1)
    assert [record.timestamp for record in batch.records()] == [-1]


@pytest.mark.parametrize(
    ("records", "options"),
    [
        ([], {}),
        ([Record(5, T, None, None), Record(5, T, None, None)], {}),
        ([Record(4, T, None, None)], {"base_offset": 5}),
        ([Record(2**31, T, None, None)], {}),
        ([SimpleRecord(-2, None, None)], {}),
        ([ONE], {"is_transactional": True}),
        ([ONE], {"producer_id": 1, "base_sequence": 0}),
        ([ONE], {"producer_id": 1, "producer_epoch": 0}),
    ],
    ids=[
        "no record",
        "same offset twice",
        "offset before the base",
        "offset delta beyond 31 bits",
        "negative timestamp",
        "transaction without producer",
        "producer without epoch",
        "producer without sequence",
    ],
)
def test_batches_that_kafkas_builder_refuses_are_refused(records: list[Any], options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        build_batch(records, **options)


def test_largest_offset_delta() -> None:
    assert view(build_batch([Record(2**31 - 1, T, None, None)])).last_offset == 2**31 - 1


def test_control_batch_needs_no_sequence() -> None:
    batch = view(build_batch([ONE], is_control=True, is_transactional=True, producer_id=1, producer_epoch=0))
    assert (batch.is_control, batch.is_transactional, batch.base_sequence) == (True, True, -1)


def test_empty_batch_keeps_the_range_and_the_sequence() -> None:
    batch = view(
        build_empty_batch(
            base_offset=10,
            last_offset=19,
            max_timestamp=T,
            attributes=compute_attributes(CompressionType.ZSTD, 1, True, False, True),
            producer_id=5,
            producer_epoch=1,
            base_sequence=40,
            partition_leader_epoch=2,
        )
    )
    assert (batch.size_in_bytes, batch.record_count) == (61, 0)
    assert (batch.base_offset, batch.last_offset, batch.base_sequence, batch.last_sequence) == (10, 19, 40, 49)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (-1, T, 1)
    assert (batch.compression_type, batch.is_transactional, batch.delete_horizon_ms) == (0, True, None)


def test_assembled_payload_is_taken_as_it_is() -> None:
    source = view(build_batch([ONE, ONE], compression_type=CompressionType.LZ4))
    data = assemble_batch(
        source.payload,
        record_count=2,
        base_offset=7,
        last_offset_delta=1,
        base_timestamp=T,
        max_timestamp=T,
        attributes=CompressionType.LZ4,
    )
    assert [record.offset for record in view(data).records()] == [7, 8]
    assert view(data).crc == source.crc


def test_attributes() -> None:
    assert compute_attributes(CompressionType.ZSTD, 0, False, False) == 0b0000100
    assert compute_attributes(CompressionType.NONE, 1, True, True, True) == 0b1111000
