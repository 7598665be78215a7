"""Retention: the order of the rules, and the files that are deleted with a segment."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.disks.logs import NOW, Disk, append, batch

SIZE = len(batch(b"x"))


def test_rules_apply_one_after_the_other(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log({"segment.bytes": str(SIZE), "retention.bytes": str(3 * SIZE), "retention.ms": "100"})
    for number in range(6):
        append(log, b"x", timestamp=NOW + number)
    log.update_high_watermark(6)
    log.maybe_increment_log_start_offset(2, "test")
    assert log.delete_old_segments() == 3, "two by start offset, one by size"
    assert log.segments.base_offsets == [3, 4, 5]
    disk.advance(105)
    assert log.delete_old_segments() == 2, "the youngest is not older than retention.ms"
    assert (log.log_start_offset, log.segments.base_offsets) == (5, [5])


def test_log_start_applies_to_compacted_logs_and_nothing_else_does(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log({"segment.bytes": str(SIZE), "retention.ms": "1", "cleanup.policy": "compact"})
    for number in range(3):
        append(log, b"x", timestamp=NOW + number)
    log.update_high_watermark(3)
    disk.advance(10_000)
    assert log.delete_old_segments() == 0
    log.maybe_increment_log_start_offset(1, "test")
    assert log.delete_old_segments() == 1


def test_snapshots_leave_with_their_segments(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log({"segment.bytes": str(SIZE), "retention.ms": "1", "file.delete.delay.ms": "50"})
    for number in range(3):
        append(log, b"x", timestamp=NOW + number)
    log.update_high_watermark(3)
    assert log.state.producers.snapshot_offsets == [1, 2]
    disk.advance(10_000)
    assert log.delete_old_segments() == 3
    assert log.state.producers.snapshot_offsets == [3]
    disk.advance(50)
    assert sorted(name for name in os.listdir(log.dir) if "snapshot" in name) == ["00000000000000000003.snapshot"]
