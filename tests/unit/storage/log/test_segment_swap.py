"""Replacing segments by rewritten ones."""

from __future__ import annotations

import os
from pathlib import Path

from odradek.storage.log.segment_swap import put_in_place, remove_cleaned_files, rename_to_swap, replace_segments
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.log_segment import LogSegment
from tests.support.disks.faulty_disk import FaultyFileSystem
from tests.support.disks.logs import Disk, append, batch, read_all, read_bytes, values_of


def make_log(disk: Disk, **producer: int) -> UnifiedLog:
    """Segments at 0, 1, 2 and 3 of one record each, below the high watermark."""
    log = disk.log({"file.delete.delay.ms": "1000"})
    for number in range(4):
        extra = {**producer, "base_sequence": number} if producer else {}
        append(log, b"value %d" % number, **extra)
        log.update_high_watermark(number + 1)
        if number < 3:
            log.roll()
    return log


def write_cleaned(disk: Disk, log: UnifiedLog, base_offset: int, *offsets: int) -> None:
    segment = LogSegment.open(log.dir, base_offset, log.config, disk.environment, create=True, suffix=".cleaned")
    for offset in offsets:
        segment.append([batch(b"new %d" % offset, base_offset=offset)], offset, 0, offset)
    segment.close()


def swap(disk: Disk, log: UnifiedLog, base_offset: int, *sources: int) -> None:
    replace_segments(log.state, rename_to_swap(log.dir, [base_offset], log.config, disk.environment), sources)


def test_readers_find_the_new_segment(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    write_cleaned(disk, log, 0, 1)
    swap(disk, log, 0, 0, 1)
    assert log.segments.base_offsets == [0, 2, 3]
    assert values_of(read_all(log)) == [b"new 1", b"value 2", b"value 3"]
    assert not [name for name in os.listdir(log.dir) if name.endswith((".cleaned", ".swap"))]


def test_old_regions_can_be_read_until_the_files_are_unlinked(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    found = log.read(0, 1000, FetchIsolation.HIGH_WATERMARK, min_one_message=True)
    write_cleaned(disk, log, 0, 1)
    swap(disk, log, 0, 0, 1)
    assert b"value 0" in read_bytes(found)
    assert [name for name in os.listdir(log.dir) if name.endswith(".deleted")]
    disk.advance(1000)
    assert not [name for name in os.listdir(log.dir) if name.endswith(".deleted")]
    assert values_of(read_all(log)) == [b"new 1", b"value 2", b"value 3"]


def test_names_change_in_an_order_that_a_start_understands(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    for base_offset in (0, 2):
        write_cleaned(disk, log, base_offset, base_offset)
    disk.environment.fs = fs = FaultyFileSystem()
    new = rename_to_swap(log.dir, [0, 2], log.config, disk.environment)
    renamed = [name.removeprefix("rename ") for name in fs.operations]
    assert [name for name in renamed if ".log" in name] == [f"{2:020d}.log.cleaned", f"{0:020d}.log.cleaned"]
    assert [segment.base_offset for segment in new] == [0, 2]
    old = put_in_place(log.segments, new, [0, 1, 2])
    assert [segment.base_offset for segment in old] == [0, 1, 2]
    assert all(path.endswith(".deleted") for segment in old for path in segment.paths)
    assert not any(path.endswith(".swap") for segment in new for path in segment.paths)


def test_a_missing_source_is_skipped(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    log.maybe_increment_log_start_offset(1, "test")
    log.delete_old_segments()
    write_cleaned(disk, log, 1, 1)
    swap(disk, log, 1, 0, 1)
    assert log.segments.base_offsets == [1, 2, 3]


def test_snapshots_of_bases_that_are_no_more_go(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk, producer_id=1, producer_epoch=0)
    assert {1, 2, 3} <= {int(name[:20]) for name in os.listdir(log.dir) if name.endswith(".snapshot")}
    write_cleaned(disk, log, 1, 2)
    swap(disk, log, 1, 1, 2)
    assert {int(name[:20]) for name in os.listdir(log.dir) if name.endswith(".snapshot")} == {1, 3}
    disk.advance(1000)
    assert not [name for name in os.listdir(log.dir) if "deleted" in name]


def test_a_high_watermark_at_the_end_of_a_replaced_segment_is_looked_up_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    log.watermarks.update_high_watermark(2)
    log.watermarks._high_watermark = LogOffsetMetadata(2, 1, log.segments.first.size)
    write_cleaned(disk, log, 0, 1)
    swap(disk, log, 0, 0, 1)
    assert log.high_watermark_metadata == (2, 2, 0)


def test_what_was_not_put_in_place_is_removed(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = make_log(disk)
    before = sorted(os.listdir(log.dir))
    write_cleaned(disk, log, 0, 1)
    remove_cleaned_files(log.dir, disk.environment.fs)
    assert sorted(os.listdir(log.dir)) == before
    remove_cleaned_files(str(tmp_path / "gone"), disk.environment.fs)
