"""Batches with some of their records, against batches that are built from those records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.protocol.records.retained import empty_batch, rebuild_batch
from tests.support.wire.record_strategies import T

PRODUCER = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11, "partition_leader_epoch": 5}

records = st.lists(
    st.builds(
        SimpleRecord,
        st.integers(T - 10_000, T + 10_000_000),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@given(
    records,
    st.data(),
    st.sampled_from([0, 1, 2, 3, 4]),
    st.sampled_from([0, 1]),
    st.none() | st.integers(T, T + 10**12),
    st.none() | st.integers(T, T + 10**12),
)
def test_rebuilt_batch_is_the_batch_of_its_records(
    simple: list[SimpleRecord],
    data: st.DataObject,
    codec: int,
    timestamp_type: int,
    had_horizon: int | None,
    horizon: int | None,
) -> None:
    def build(some: list[SimpleRecord] | list[Record], horizon_ms: int | None, last: int | None = None) -> bytearray:
        return build_batch(
            some,
            base_offset=100,
            compression_type=codec,
            timestamp_type=timestamp_type,
            log_append_time=T + 1 if timestamp_type else -1,
            delete_horizon_ms=horizon_ms,
            last_offset=last,
            is_transactional=True,
            **PRODUCER,  # type: ignore[arg-type]
        )

    original = RecordBatch(memoryview(build(simple, had_horizon)))
    opened = original.record_bytes()
    spans = original.keys(opened)
    chosen = data.draw(st.sets(st.sampled_from(range(len(spans))), min_size=1).map(sorted))
    rebuilt = RecordBatch(memoryview(rebuild_batch(original, opened, [spans[index] for index in chosen], horizon)))
    rebuilt.ensure_valid()
    # With LogAppendTime the time of the append becomes the records' own.
    seen = list(original.records())
    assert bytes(rebuilt.buffer) == bytes(build([seen[index] for index in chosen], horizon, 100 + len(simple) - 1))


@pytest.mark.parametrize("is_control", [False, True])
def test_empty_batch_keeps_producer_epoch_and_sequence(is_control: bool) -> None:
    original = RecordBatch(
        memoryview(
            build_batch(
                [SimpleRecord(T, b"a", b"b"), SimpleRecord(T + 5, b"c", b"d")],
                base_offset=40,
                compression_type=1,
                is_transactional=True,
                is_control=is_control,
                delete_horizon_ms=T + 9,
                **PRODUCER,  # type: ignore[arg-type]
            )
        )
    )
    empty = RecordBatch(memoryview(empty_batch(original)))
    empty.ensure_valid()
    assert (empty.size_in_bytes, empty.record_count, list(empty.records())) == (61, 0, [])
    assert (empty.base_offset, empty.last_offset, empty.last_sequence) == (40, 41, 12)
    assert (empty.producer_id, empty.producer_epoch, empty.partition_leader_epoch) == (7, 3, 5)
    assert (empty.is_transactional, empty.is_control, empty.compression_type) == (True, is_control, 0)
    assert (empty.max_timestamp, empty.base_timestamp, empty.delete_horizon_ms) == (T + 5, -1, None)
