"""Rolling, and the handling of disk errors, for appends, truncation and retention."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.storage.disk.disk_space import DiskFullError, LogDirFullError
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full
from tests.support.disks.logs import NOW, Disk, append, batch


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# -- rolling -----------------------------------------------------------


def test_log_rolls_when_a_segment_is_full(disk: Disk) -> None:
    size = len(batch(b"x"))
    log = disk.log({"segment.bytes": str(2 * size)})
    for _ in range(5):
        append(log, b"x")
    assert log.segments.base_offsets == [0, 2, 4]
    assert log.state.producers.snapshot_offsets == [2, 4]
    assert log.recovery_point == 4


def test_log_rolls_by_the_time_of_its_records(disk: Disk) -> None:
    log = disk.log({"segment.ms": "1000"})
    append(log, b"x", timestamp=NOW)
    append(log, b"x", timestamp=NOW + 1000)
    append(log, b"x", timestamp=NOW + 1001)
    assert log.segments.base_offsets == [0, 2]
    disk.advance(10_000)
    append(log, b"x", timestamp=NOW + 1002)
    assert log.segments.base_offsets == [0, 2], "the wall clock does not count once records have timestamps"


def test_log_rolls_by_the_wall_clock_without_timestamps(disk: Disk) -> None:
    log = disk.log({"segment.ms": "1000"})
    append(log, b"x", timestamp=-1)
    disk.advance(1001)
    append(log, b"x", timestamp=-1)
    assert log.segments.base_offsets == [0, 1]


def test_log_rolls_when_an_index_is_full(disk: Disk) -> None:
    log = disk.log({"segment.index.bytes": "24", "index.interval.bytes": "1"})
    for _ in range(4):
        append(log, b"x", timestamp=NOW)
    assert log.segments.base_offsets == [0, 2], "room for two time entries, one of which is kept for the roll"


def test_log_rolls_before_offsets_leave_31_bits(disk: Disk) -> None:
    log = disk.log()
    log.append_as_follower(batch(b"a", base_offset=0, epoch=0))
    log.append_as_follower(batch(b"b", base_offset=2**31 - 1, epoch=0))
    assert log.segments.base_offsets == [0]
    log.append_as_follower(batch(b"b", base_offset=2**31, epoch=0))
    assert log.segments.base_offsets == [0, 2**31]


def test_roll_continues_without_the_snapshot(tmp_path: Path) -> None:
    fs = FaultyFileSystem(1, disk_full, kinds=frozenset({"write"}))
    disk = Disk(tmp_path, fs=fs)
    log = disk.log()
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll()
    assert log.segments.base_offsets == [0, 1]
    assert not list(Path(log.dir).glob("*.snapshot"))
    log.discard()


# -- errors -----------------------------------------------------------


def test_lack_of_space_leaves_the_directory_online(disk: Disk) -> None:
    state = disk.log().state
    with pytest.raises(LogDirFullError), state.disk("testing"):
        raise DiskFullError(28, "No space left on device")
    assert (disk.log_dir.is_online, disk.log_dir.space.is_full) == (True, True)


def test_records_that_cannot_be_read_leave_the_directory_online(disk: Disk) -> None:
    state = disk.log().state
    with pytest.raises(KafkaError) as error, state.disk("testing"):
        raise CorruptRecordError("cut short")
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    assert disk.log_dir.is_online


def test_any_other_error_takes_the_directory_offline_for_good(disk: Disk) -> None:
    state = disk.log().state
    with pytest.raises(KafkaError, match="Error while testing for") as error, state.disk("testing"):
        raise OSError(5, "Input/output error")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not disk.log_dir.is_online
    with pytest.raises(KafkaError, match="already offline"), state.disk("testing"):
        raise AssertionError("nothing is done in a directory that is offline")
