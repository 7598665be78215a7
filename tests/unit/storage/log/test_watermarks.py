"""The order of the four offsets, and their cached positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import Disk, append


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    log = Disk(tmp_path).log()
    for value in (b"a", b"b", b"c", b"d"):
        append(log, value)
    return log


def test_high_watermark_is_kept_within_the_log(log: UnifiedLog) -> None:
    assert log.update_high_watermark(99) == 4
    assert log.update_high_watermark(2) == 2
    log.maybe_increment_log_start_offset(1, "test")
    assert log.update_high_watermark(0) == 1


def test_increments_only_go_up(log: UnifiedLog) -> None:
    assert log.maybe_increment_high_watermark(2)
    assert not log.maybe_increment_high_watermark(2)
    assert not log.maybe_increment_high_watermark(1)
    with pytest.raises(ValueError, match="exceeds current log end offset"):
        log.maybe_increment_high_watermark(5)


def test_same_offset_on_a_newer_segment_is_an_increment(log: UnifiedLog) -> None:
    log.maybe_increment_high_watermark(LogOffsetMetadata(3, 0, 10))
    assert log.maybe_increment_high_watermark(LogOffsetMetadata(3, 3, 0))
    assert log.high_watermark_metadata == (3, 3, 0)


def test_raise_to_end_does_what_an_increment_to_the_end_does(log: UnifiedLog) -> None:
    log.update_high_watermark(2)
    assert log.watermarks.raise_high_watermark_to_end()
    assert log.high_watermark_metadata == log.local_log.end_offset_metadata
    assert not log.watermarks.raise_high_watermark_to_end()
    log.watermarks._set(LogOffsetMetadata(4, 0, log.size))
    log.local_log.roll(4)
    assert log.watermarks.raise_high_watermark_to_end()
    assert log.high_watermark_metadata == (4, 4, 0)


def test_an_append_raises_the_high_watermark_of_a_replica_that_is_alone(log: UnifiedLog) -> None:
    log.update_high_watermark(2)
    changes: list[int] = []
    log.watermarks.on_change = lambda: changes.append(1)
    log.watermarks.appended(is_alone=False)
    assert log.high_watermark == 2
    log.watermarks.appended(is_alone=True)
    assert log.high_watermark_metadata == log.local_log.end_offset_metadata
    assert type(log.high_watermark_metadata) is LogOffsetMetadata
    assert len(changes) == 2


def test_position_is_looked_up_when_it_is_not_known(log: UnifiedLog) -> None:
    log.update_high_watermark(2)
    assert log.high_watermark_metadata == (2, 0, log.size // 2)


def test_roll_at_the_high_watermark_moves_its_position(log: UnifiedLog) -> None:
    log.update_high_watermark(4)
    log.roll()
    assert log.high_watermark_metadata == (4, 4, 0)
    append(log, b"e")
    assert log.read(4, 100, FetchIsolation.HIGH_WATERMARK, True).size_in_bytes == 0


def test_log_start_pushes_the_unstable_offset_up(log: UnifiedLog) -> None:
    append(log, b"t", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log, b"u")
    log.update_high_watermark(6)
    assert log.last_stable_offset == 4
    log.maybe_increment_log_start_offset(5, "test")
    assert (log.first_unstable_offset, log.last_stable_offset) == (5, 5)
    assert log.limit_of(FetchIsolation.TXN_COMMITTED) == 5
    assert log.read(5, 100, FetchIsolation.TXN_COMMITTED, True).size_in_bytes == 0


def test_on_change_is_called_for_every_visible_change(log: UnifiedLog) -> None:
    changes = 0

    def count() -> None:
        nonlocal changes
        changes += 1

    log.watermarks.on_change = count
    for change in (
        lambda: append(log, b"e"),
        lambda: log.update_high_watermark(5),
        lambda: log.maybe_increment_log_start_offset(1, "test"),
        log.roll,
        lambda: log.assign_epoch_start_offset(9, 5),
        lambda: log.truncate_to(5),  # the epoch is removed, although there are no records to remove
        lambda: log.truncate_to(3),
        lambda: log.truncate_fully_and_start_at(7),
    ):
        before = changes
        change()
        assert changes > before
    before = changes
    assert log.read(7, 100, FetchIsolation.HIGH_WATERMARK, True).size_in_bytes == 0
    assert changes == before
