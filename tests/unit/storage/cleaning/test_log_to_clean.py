"""The cleanable range of a log, by Kafka's rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.cleaning.log_to_clean import LogToClean, cleanable_bytes, examine
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import NOW, Disk, append

HOUR_MS = 3_600_000


def make_log(tmp_path: Path, segments: int = 4, **overrides: str) -> UnifiedLog:
    """Segments of one record each, an hour apart, the last one now; all below the high watermark."""
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    log = Disk(tmp_path).log({"cleanup.policy": "compact", **named})
    for number in range(segments):
        append(log, b"x" * 100, timestamp=NOW - (segments - 1 - number) * HOUR_MS)
        if number < segments - 1:
            log.roll()
    log.update_high_watermark(segments)
    return log


def range_of(found: LogToClean) -> tuple[int, int]:
    return found.cleanable.first_dirty_offset, found.cleanable.first_uncleanable_offset


def test_everything_closed_is_dirty_at_first(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    found = examine(log, None, NOW)
    assert range_of(found) == (0, 3)
    assert (found.cleanable.cleanable_ratio, found.force_update_checkpoint) == (1.0, False)
    assert found.is_filthier(None)


@pytest.mark.parametrize(("ratio", "is_due"), [("0.33", True), ("0.34", False)])
def test_the_ratio_must_be_exceeded(tmp_path: Path, ratio: str, is_due: bool) -> None:
    log = make_log(tmp_path, min_cleanable_dirty_ratio=ratio)
    found = examine(log, 2, NOW)
    assert range_of(found) == (2, 3)
    assert found.cleanable.cleanable_ratio == pytest.approx(1 / 3)
    assert found.is_filthier(None) is is_due


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("checkpoint", [0, 5])
def test_a_checkpoint_outside_of_the_log_is_corrected(
    tmp_path: Path, checkpoint: int, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(tmp_path, cleanup_policy=policy)
    log.maybe_increment_log_start_offset(1, "test")
    found = examine(log, checkpoint, NOW)
    assert (found.cleanable.first_dirty_offset, found.force_update_checkpoint) == (1, True)
    is_worth_telling = checkpoint == 5 or policy == "compact"
    assert bool(caplog.records) is is_worth_telling


@pytest.mark.parametrize("checkpoint", [1, 4])
def test_a_checkpoint_at_either_end_holds(tmp_path: Path, checkpoint: int) -> None:
    log = make_log(tmp_path)
    log.maybe_increment_log_start_offset(1, "test")
    found = examine(log, checkpoint, NOW)
    assert (found.cleanable.first_dirty_offset, found.force_update_checkpoint) == (checkpoint, False)


def test_what_is_not_yet_stable_stays(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.update_high_watermark(1)
    assert examine(log, None, NOW).cleanable.first_uncleanable_offset == 1
    log.update_high_watermark(0)
    found = examine(log, None, NOW)
    assert (found.cleanable.first_uncleanable_offset, found.cleanable.cleanable_ratio) == (0, 0.0)
    assert not found.is_filthier(None)


def test_a_segment_that_is_stable_in_part_stays(tmp_path: Path) -> None:
    log = Disk(tmp_path).log({"cleanup.policy": "compact"})
    for _ in range(3):
        append(log, b"x")
        append(log, b"y")
        log.roll()
    log.update_high_watermark(3)
    assert examine(log, None, NOW).cleanable.first_uncleanable_offset == 2


@pytest.mark.parametrize(("lag_ms", "expected"), [(HOUR_MS - 1, 3), (HOUR_MS + 1, 2), (2 * HOUR_MS + 1, 1)])
def test_young_segments_stay(tmp_path: Path, lag_ms: int, expected: int) -> None:
    log = make_log(tmp_path, min_compaction_lag_ms=str(lag_ms))
    assert examine(log, None, NOW).cleanable.first_uncleanable_offset == expected


@pytest.mark.parametrize(("lag_ms", "is_due"), [(2 * HOUR_MS - 1, True), (2 * HOUR_MS, False)])
def test_old_dirt_is_due_whatever_the_ratio(tmp_path: Path, lag_ms: int, is_due: bool) -> None:
    log = make_log(tmp_path, min_cleanable_dirty_ratio="1", max_compaction_lag_ms=str(lag_ms))
    assert examine(log, 1, NOW).is_filthier(None) is is_due


def test_the_delay_is_that_of_the_oldest_dirty_segment(tmp_path: Path) -> None:
    log = make_log(tmp_path, max_compaction_lag_ms=str(HOUR_MS))
    assert [examine(log, dirty, NOW).cleanable.compaction_delay_ms for dirty in (0, 1, 2)] == [2 * HOUR_MS, HOUR_MS, 0]


def test_the_cleanable_bytes_are_known_without_reading_records(tmp_path: Path) -> None:
    log = make_log(tmp_path, max_compaction_lag_ms="1")
    sizes = [segment.size for segment in log.segments]
    for segment in log.segments:
        segment.records.path = "missing"
    assert [cleanable_bytes(log, dirty, NOW) for dirty in (None, 1, 3)] == [sum(sizes[:3]), sum(sizes[1:3]), 0]


def test_nothing_is_overdue_where_nothing_is_cleanable(tmp_path: Path) -> None:
    log = make_log(tmp_path, max_compaction_lag_ms="1")
    assert not examine(log, 3, NOW).is_filthier(None)
