"""The walk that looks at timestamps alone finds what the walk over everything finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_walks import summarize
from odradek.protocol.records.timestamps import largest_timestamp
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
