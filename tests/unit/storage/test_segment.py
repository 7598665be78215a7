"""One segment: its sparse indexes, its reads, its cuts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.storage.config import LogConfig
from odradek.storage.segment import AppendedBatch, LogSegment, SegmentOffsetOverflowError
from tests.support.logs import NOW, Disk, batch, read_bytes


def new_segment(directory: Path, base_offset: int = 0, **overrides: str) -> LogSegment:
    config = LogConfig.from_props({}, {name.replace("_", "."): value for name, value in overrides.items()})
    return LogSegment.open(str(directory), base_offset, config, Disk(directory).environment, create=True)


def put(segment: LogSegment, offset: int, *values: bytes, timestamp: int = NOW) -> None:
    data = batch(*values, base_offset=offset, timestamp=timestamp)
    last = offset + len(values) - 1
    segment.append([data], last, RecordBatch(data).max_timestamp, last)


def offset_entries(segment: LogSegment) -> list[tuple[int, int]]:
    return [tuple(segment.offset_index.entry(slot)) for slot in range(segment.offset_index.entries)]  # type: ignore[misc]


def time_entries(segment: LogSegment) -> list[tuple[int, int]]:
    return [tuple(segment.time_index.entry(slot)) for slot in range(segment.time_index.entries)]  # type: ignore[misc]


def test_first_batch_is_never_indexed_and_an_entry_pairs_last_offset_with_start_position(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 40, index_interval_bytes="100")
    put(segment, 40, b"x" * 200)
    assert offset_entries(segment) == []
    start = segment.size
    put(segment, 41, b"y", b"z", timestamp=NOW + 5)
    assert offset_entries(segment) == [(42, start)]
    assert time_entries(segment) == [(NOW + 6, 42)]
    put(segment, 43, b"small")
    assert len(offset_entries(segment)) == 1, "not enough bytes since the last entry"
    segment.close()


def test_time_index_keeps_the_largest_timestamp_so_far(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    for offset, timestamp in enumerate([NOW + 9, NOW + 5, NOW + 20, NOW + 1]):
        put(segment, offset, b"x", timestamp=timestamp)
    assert time_entries(segment) == [(NOW + 9, 0), (NOW + 20, 2)]
    assert segment.largest == (NOW + 20, 2)
    segment.close()


def test_close_adds_the_last_time_entry_and_cuts_the_indexes(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"x")
    segment.close()
    assert (tmp_path / "00000000000000000000.timeindex").stat().st_size == 12
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 0


def test_batches_of_one_write_are_indexed_one_by_one(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    parts = [batch(b"x", base_offset=offset, timestamp=NOW + offset) for offset in range(3)]
    segment.append_batches(parts, [AppendedBatch(n, NOW + n, n, len(part)) for n, part in enumerate(parts)])
    assert [offset for offset, _ in offset_entries(segment)] == [1, 2]
    assert [position for _, position in offset_entries(segment)] == [len(parts[0]), len(parts[0]) * 2]
    segment.close()


def test_read_finds_the_batch_and_honours_the_limits(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", b"b")
    middle = segment.size
    put(segment, 5, b"c")
    end = segment.size
    found = segment.read(1, 10_000, end, min_one_message=False)
    assert found is not None
    assert (found.fetch_offset_metadata.relative_position, found.size_in_bytes) == (0, end)
    found = segment.read(3, 10_000, end, min_one_message=False)
    assert found is not None
    assert RecordBatch(memoryview(read_bytes(found))).base_offset == 5
    found = segment.read(0, 10_000, middle, min_one_message=False)
    assert found is not None
    assert found.size_in_bytes == middle
    found = segment.read(0, 0, end, min_one_message=False)
    assert found is not None
    assert found.size_in_bytes == 0
    assert segment.read(6, 10_000, end, min_one_message=True) is None
    segment.close()


def test_truncation_drops_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    put(segment, 0, b"a", timestamp=NOW)
    put(segment, 1, b"b", b"c", timestamp=NOW + 10)
    put(segment, 3, b"d", timestamp=NOW + 20)
    assert segment.truncate_to(2, NOW) > 0
    assert segment.read_next_offset() == 1
    assert offset_entries(segment) == []
    assert segment.largest == (NOW, 0)
    segment.close()


def test_truncation_to_nothing_starts_the_clock_anew(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", timestamp=NOW)
    segment.truncate_to(0, NOW + 77)
    assert (segment.size, segment.created_ms) == (0, NOW + 77)
    assert segment.time_waited_for_roll(NOW + 80, NOW + 500) == 3
    segment.close()


def test_offsets_beyond_31_bits_are_refused(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 10)
    for offset in (9, 10 + 2**31):
        with pytest.raises(SegmentOffsetOverflowError):
            put(segment, offset, b"a")
    assert segment.size == 0
    segment.close()


def test_retention_time_falls_back_to_the_file(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", timestamp=-1)
    os.utime(segment.records.path, ns=(0, 5_000_000_000))
    assert segment.largest_timestamp == 5_000
    put(segment, 1, b"a", timestamp=NOW)
    assert segment.largest_timestamp == NOW
    segment.close()


def test_find_by_timestamp_skips_records_below_the_start(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    for offset in range(6):
        put(segment, offset, b"x", timestamp=NOW + offset * 10)
    found = segment.find_by_timestamp(NOW + 15, 0)
    assert found is not None
    assert (found.offset, found.timestamp) == (2, NOW + 20)
    found = segment.find_by_timestamp(NOW + 15, 4)
    assert found is not None
    assert found.offset == 4
    assert segment.find_by_timestamp(NOW + 51, 0) is None
    segment.close()


def test_suffixes_and_directories(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a")
    segment.change_suffix("", ".deleted")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
    ]
    segment.change_dir("/elsewhere")
    assert all(path.startswith("/elsewhere/") for path in segment.paths)
    segment.discard()


def test_preallocated_segment_is_trimmed_when_it_becomes_inactive(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, preallocate="true", segment_bytes="8192")
    put(segment, 0, b"a")
    assert os.stat(segment.records.path).st_size == 8192
    segment.become_inactive()
    assert os.stat(segment.records.path).st_size == segment.size
    segment.close()
