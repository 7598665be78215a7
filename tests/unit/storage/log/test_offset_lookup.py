"""Looking up offsets by time, against a scan of all records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch
from odradek.protocol.records.retained import empty_batch
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, Disk, append, batch, read_all

timestamps = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(timestamps, st.integers(-2, 45), st.integers(0, 25))
def test_lookups_agree_with_a_scan(batches: list[list[int]], target: int, high_watermark: int) -> None:
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


def append_dated(log: UnifiedLog, timestamp: int, max_timestamp: int) -> None:
    """One record, in a batch whose header has another max timestamp."""
    payload = RecordBatch(batch(b"v", timestamp=timestamp)).payload
    fields = {"record_count": 1, "base_offset": 0, "last_offset_delta": 0, "attributes": 0}
    records = assemble_batch(payload, base_timestamp=timestamp, max_timestamp=max_timestamp, **fields)
    log.append_as_leader(memoryview(records), 0)


def test_a_max_timestamp_above_the_records_hides_no_later_segment(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append_dated(log, NOW, NOW + 50_000)
    log.roll()
    append(log, b"later", timestamp=NOW + 10)
    assert log.fetch_offset_by_timestamp(NOW + 5) == (NOW + 10, 1, 0)
    log.discard()


def test_the_latest_record_is_found_if_its_header_has_a_larger_timestamp(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append_dated(log, NOW, NOW + 50_000)
    assert log.fetch_offset_by_timestamp(-3) == (NOW, 0, 0)
    log.discard()


def test_records_are_found_whose_batch_says_they_have_no_time(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    for claimed in (-1, 0, NOW - 1):
        append_dated(log, NOW, claimed)
    assert log.fetch_offset_by_timestamp(NOW) == (NOW, 0, 0)
    log.discard()


def test_the_first_record_is_the_latest_of_those_without_timestamps(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    assert log.fetch_offset_by_timestamp(-3) is None
    for _ in range(2):
        append_dated(log, -1, -1)
    assert log.fetch_offset_by_timestamp(-3) == (-1, 0, 0)
    log.discard()


def test_a_batch_that_compaction_has_emptied_has_no_latest_record(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    log.append_as_follower(batch(b"earlier", epoch=0))
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    latest = batch(b"emptied", timestamp=NOW + 10, base_offset=1, epoch=0, **producer)
    log.append_as_follower(memoryview(empty_batch(RecordBatch(latest))))
    assert log.fetch_offset_by_timestamp(-3) is None
    assert log.fetch_offset_by_timestamp(NOW + 10) is None
    assert log.fetch_offset_by_timestamp(NOW) == (NOW, 0, 0)
    log.discard()


def test_records_below_the_log_start_hide_no_later_segment(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"deleted", timestamp=NOW + 10)
    append(log, b"kept", timestamp=NOW)
    log.roll()
    append(log, b"later", timestamp=NOW + 20)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(1, "a DeleteRecords")
    assert log.fetch_offset_by_timestamp(NOW + 5) == (NOW + 20, 2, 0)
    log.discard()
