"""Looking up offsets by time, against a scan of all records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.logs import NOW, Disk, append, read_all

timestamps = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(timestamps, st.integers(-2, 45), st.integers(0, 25))
def test_lookups_agree_with_a_scan(batches: list[list[int]], target: int, high_watermark: int) -> None:
    from odradek.storage.fetch_data import FetchIsolation

    with tempfile.TemporaryDirectory() as directory:
        log = Disk(Path(directory)).log({"segment.bytes": "400", "index.interval.bytes": "0"})
        for offsets in batches:
            append(log, *[b"x"] * len(offsets), timestamp=NOW + offsets[0])
        log.update_high_watermark(high_watermark)
        records = read_all(log)
        first = next((record for record in records if record.timestamp >= NOW + target), None)
        found = log.fetch_offset_by_timestamp(NOW + target)
        assert (found and found[:2]) == (first and (first.timestamp, first.offset))
        largest = max(records, key=lambda record: (record.timestamp, -record.offset))
        found = log.fetch_offset_by_timestamp(-3)
        assert found is not None
        assert found[:2] == (largest.timestamp, largest.offset)
        bounded = log.fetch_offset_by_timestamp(NOW + target, FetchIsolation.HIGH_WATERMARK)
        visible = first is not None and first.offset < log.high_watermark
        assert (bounded is not None) == visible
        log.discard()
