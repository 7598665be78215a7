"""Advancing the log start: hidden records, removed state, and refused offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import Disk, append

LOG_END = FetchIsolation.LOG_END


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_delete_records_moves_the_log_start(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", b"b", b"c")
    log.update_high_watermark(2)
    assert log.delete_records(1) == 1
    assert log.delete_records(-1) == 2
    with pytest.raises(KafkaError) as error:
        log.delete_records(3)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError) as error:
        log.read(1, 100, LOG_END, True)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_delete_records_flushes_nothing(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", b"b", b"c")
    log.update_high_watermark(3)
    log.delete_records(3)
    assert (log.log_start_offset, log.flusher.recovery_point) == (3, 0)


def test_delete_records_of_a_compacted_topic_is_refused(disk: Disk) -> None:
    log = disk.log({"cleanup.policy": "compact"})
    with pytest.raises(KafkaError) as error:
        log.delete_records(0)
    assert error.value.code is ErrorCode.POLICY_VIOLATION


def test_log_start_only_moves_up_and_not_past_the_high_watermark(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", b"b", b"c")
    log.update_high_watermark(2)
    assert log.maybe_increment_log_start_offset(2, "test")
    assert not log.maybe_increment_log_start_offset(2, "test")
    assert not log.maybe_increment_log_start_offset(1, "test")
    with pytest.raises(KafkaError, match="larger than the high watermark 2"):
        log.maybe_increment_log_start_offset(3, "test")
    assert log.log_start_offset == 2


def test_negative_offsets_below_the_special_one_mean_nothing(disk: Disk) -> None:
    log = disk.log()
    with pytest.raises(KafkaError, match="is not valid") as error:
        log.delete_records(-2)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_epochs_below_are_forgotten_but_the_one_the_log_begins_in(disk: Disk) -> None:
    log = disk.log()
    for epoch in range(3):
        append(log, b"a", b"b", epoch=epoch)
    log.update_high_watermark(6)
    log.maybe_increment_log_start_offset(3, "test")
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(1, 3), (2, 4)]


def test_nothing_is_removed_before_the_next_retention_pass(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a")
    log.roll()
    append(log, b"b")
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1, "test")
    assert log.segments.base_offsets == [0, 1]
    assert log.delete_old_segments() == 1
    assert log.segments.base_offsets == [1]
