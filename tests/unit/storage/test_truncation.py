"""Cutting a log back takes along all that was known because of the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.unified_log import UnifiedLog
from tests.support.logs import Disk, append, read_all, values_of

OVERRIDES = {"segment.bytes": "150"}


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    log = Disk(tmp_path).log(OVERRIDES)
    for number in range(8):
        append(log, b"%d" % number, epoch=number // 2, producer_id=1, producer_epoch=0, base_sequence=number)
    log.update_high_watermark(8)
    return log


@pytest.mark.parametrize("offset", range(9))
def test_everything_follows_the_end(log: UnifiedLog, offset: int) -> None:
    assert log.truncate_to(offset) == (offset < 8)
    assert values_of(read_all(log)) == [b"%d" % number for number in range(offset)]
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (offset, offset, offset)
    assert log.latest_epoch == (offset - 1) // 2 if offset else log.latest_epoch == -1
    producer = log.active_producers().get(1)
    assert (producer.last_seq if producer else -1) == offset - 1
    assert log.recovery_point <= offset
    assert all(snapshot <= offset for snapshot in log.producers.snapshot_offsets)


def test_negative_offsets_are_a_bug(log: UnifiedLog) -> None:
    with pytest.raises(ValueError, match="negative offset"):
        log.truncate_to(-1)


def test_truncated_log_survives_a_restart(log: UnifiedLog, tmp_path: Path) -> None:
    log.truncate_to(5)
    append(log, b"other", epoch=9)
    log.close()
    again = Disk(tmp_path).log(OVERRIDES, clean=True)
    assert values_of(read_all(again)) == [b"0", b"1", b"2", b"3", b"4", b"other"]
    assert again.latest_epoch == 9


def test_empty_log_begins_where_it_is_told(log: UnifiedLog) -> None:
    log.truncate_fully_and_start_at(100, 90)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (90, 100, 100)
    assert log.high_watermark == 100
    assert not log.active_producers()
    assert append(log, b"x", epoch=9) == 100
