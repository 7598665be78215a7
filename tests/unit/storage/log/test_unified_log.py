"""UnifiedLog: retention, truncation, failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.disk_space import LogDirFullError
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full
from tests.support.disks.logs import NOW, Disk, append, batch, read_all, values_of
from tests.support.disks.unreadable import make_unreadable

LOG_END = FetchIsolation.LOG_END


class SmallDisk(OsFileSystem):
    """A disk with no free space but its reserve."""

    __slots__ = ()

    def space(self, path: str) -> tuple[int, int]:
        return 1_000_000, 16_000_000


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# -- retention -----------------------------------------------------------


def test_old_segments_are_renamed_at_once_and_unlinked_later(disk: Disk) -> None:
    log = disk.log({"retention.ms": "1000", "file.delete.delay.ms": "500"})
    append(log, b"x", timestamp=NOW)
    log.roll()
    append(log, b"y", timestamp=NOW + 5000)
    log.update_high_watermark(2)
    disk.advance(1001)
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, log.segments.base_offsets) == (1, [1])
    names = sorted(os.listdir(log.dir))
    assert [name for name in names if name.endswith(".deleted")] == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
    ]
    disk.advance(500)
    assert not [name for name in os.listdir(log.dir) if name.endswith(".deleted")]


def test_an_index_that_retention_cannot_read_takes_the_directory_offline(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = disk.log({"retention.ms": "1000"})
    append(log, b"x", timestamp=NOW)
    log.close()
    log = disk.log({"retention.ms": "1000"}, clean=True)
    log.update_high_watermark(1)
    make_unreadable(monkeypatch, disk.path, ".timeindex")
    with pytest.raises(KafkaError) as refused:
        log.delete_old_segments()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not disk.log_dir.is_online


def test_the_active_segment_can_expire(disk: Disk) -> None:
    log = disk.log({"retention.ms": "1000"})
    append(log, b"x", timestamp=NOW)
    log.update_high_watermark(1)
    disk.advance(1001)
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (1, 1, [1])


def test_nothing_above_the_high_watermark_is_deleted(disk: Disk) -> None:
    log = disk.log({"retention.ms": "0"})
    append(log, b"x", timestamp=NOW)
    log.roll()
    disk.advance(5000)
    assert log.delete_old_segments() == 0


# -- truncation -----------------------------------------------------------


def test_truncation_inside_a_batch_removes_the_batch_but_not_the_offsets_before(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    assert log.truncate_to(2)
    assert log.log_end_offset == 2
    assert values_of(read_all(log)) == [b"a"]
    assert append(log, b"e") == 2


def test_truncation_takes_epochs_and_producers_along(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", epoch=0, producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, b"b", epoch=1, producer_id=1, producer_epoch=0, base_sequence=1)
    log.update_high_watermark(2)
    log.truncate_to(1)
    assert log.latest_epoch == 0
    assert log.active_producers()[1].last_seq == 0
    assert log.high_watermark == 1
    assert append(log, b"c", epoch=2, producer_id=1, producer_epoch=0, base_sequence=1) == 1


def test_truncation_below_the_first_segment_removes_all(disk: Disk) -> None:
    log = disk.log(log_start_offset=100)
    append(log, b"a")
    assert log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (50, 50, [50])


def test_truncation_beyond_the_end_only_drops_contradicting_epochs(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", epoch=0)
    log.assign_epoch_start_offset(5, 1)
    assert not log.truncate_to(1)
    assert log.latest_epoch == 0


def test_full_truncation_keeps_a_given_log_start(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a")
    log.truncate_fully_and_start_at(10)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.size) == (10, 10, 10, 0)


# -- failure -----------------------------------------------------------


def test_io_error_takes_the_directory_offline(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = disk.log()
    append(log, b"a")

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(disk.environment.fs), "append", fail)
    with pytest.raises(KafkaError) as error:
        append(log, b"b")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not disk.log_dir.is_online
    monkeypatch.undo()
    for call in (lambda: append(log, b"c"), lambda: log.read(0, 10, LOG_END, True)):
        with pytest.raises(KafkaError) as error:
            call()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_topic_id_is_assigned_once(disk: Disk) -> None:
    log = disk.log()
    log.assign_topic_id(b"\x01" * 16)
    log.assign_topic_id(b"\x01" * 16)
    with pytest.raises(KafkaError) as error:
        log.assign_topic_id(b"\x02" * 16)
    assert error.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    assert Path(log.dir, "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AQEBAQEBAQEBAQEBAQEBAQ"


def test_a_log_has_no_topic_id_if_the_protocol_has_none(disk: Disk) -> None:
    log = disk.log()
    log.assign_topic_id(b"\x01" * 16)
    log.close()
    metadata = Path(log.dir, "partition.metadata")
    assert metadata.exists()
    disk.environment.keep_partition_metadata_file = False
    log = disk.log(clean=True)
    assert log.topic_id is None
    assert not metadata.exists()
    for topic_id in (b"\x02" * 16, b"\x03" * 16):
        log.assign_topic_id(topic_id)
        assert log.topic_id is None
    assert not metadata.exists()
    log.close()


def test_full_disk_is_answered_and_passes(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"append"}))
    disk = Disk(tmp_path, fs=fs)
    log = disk.log()
    append(log, b"a")
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    for call in (
        lambda: append(log, b"b"),
        lambda: log.append_as_follower(batch(b"b", base_offset=1, epoch=0)),
        lambda: append(log, b"b", epoch=7),
    ):
        with pytest.raises(LogDirFullError) as error:
            call()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert disk.log_dir.space.is_full
        disk.log_dir.space.check()
    assert disk.log_dir.is_online
    assert (values_of(read_all(log)), log.log_end_offset, log.latest_epoch) == ([b"a"], 1, 0)
    fs.mend()
    assert append(log, b"b", epoch=7) == 1
    assert log.latest_epoch == 7
    log.close()


def test_appends_are_refused_before_the_disk_is(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = disk.log()
    monkeypatch.setattr(disk.log_dir.space, "_fs", SmallDisk())
    for call in (lambda: append(log, b"a"), lambda: log.append_as_follower(batch(b"a", epoch=0))):
        with pytest.raises(LogDirFullError):
            call()
    assert log.size == 0


def test_failing_undo_takes_the_directory_offline(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"append", "truncate"}))
    disk = Disk(tmp_path, fs=fs)
    log = disk.log()
    append(log, b"a")
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    with pytest.raises(KafkaError) as error:
        append(log, b"b")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not disk.log_dir.is_online


def test_retention_of_everything_makes_room_first(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}))
    disk = Disk(tmp_path, fs=fs)
    log = disk.log({"retention.ms": "1", "file.delete.delay.ms": "0"})
    for _ in range(2):
        append(log, b"a")
        log.roll()
        append(log, b"b")
    log.update_high_watermark(4)
    disk.advance(1_000)
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    assert log.delete_old_segments() == 2
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)
    assert log.delete_old_segments() == 0
    fs.mend()
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    log.close()
