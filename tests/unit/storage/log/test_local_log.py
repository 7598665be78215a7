"""Segments of a log: rolling, truncation, renaming the directory, delayed deletion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.disk.disk_space import DiskFullError
from odradek.storage.log.local_log import LocalLog
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.log_segments import LogSegments
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error
from tests.support.disks.logs import NOW, TP, DeferredIoPool, Disk, append, batch


def new_log(disk: Disk, **overrides: str) -> LocalLog:
    config = LogConfig.from_props({}, {name.replace("_", "."): value for name, value in overrides.items()})
    directory = disk.path / "topic-0"
    directory.mkdir(parents=True)
    segments = LogSegments()
    segments.add(LogSegment.open(str(directory), 0, config, disk.environment, create=True))
    return LocalLog(str(directory), TP, config, segments, 0, disk.environment, disk.log_dir.fail)


def put(log: LocalLog, value: bytes = b"x") -> None:
    data = batch(value, base_offset=log.log_end_offset)
    log.segments.active.append([data], log.log_end_offset, NOW, log.log_end_offset)
    log.move_end(log.log_end_offset + 1)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def log(disk: Disk) -> LocalLog:
    log = new_log(disk, file_delete_delay_ms="100")
    for _ in range(3):
        put(log)
        put(log)
        log.roll()
    return log


def names(log: LocalLog, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(log.dir) if name.endswith(suffix))


def test_roll_finishes_the_old_segment(log: LocalLog) -> None:
    assert log.segments.base_offsets == [0, 2, 4, 6]
    assert Path(log.dir, "00000000000000000004.timeindex").stat().st_size == 12
    assert Path(log.dir, "00000000000000000004.index").stat().st_size == 0


def test_roll_at_an_empty_active_segment_recreates_it(log: LocalLog) -> None:
    old = log.segments.active
    assert log.roll() is not old
    assert log.segments.base_offsets == [0, 2, 4, 6]
    put(log)
    assert log.read(6, 100, log.end_offset_metadata, min_one_message=True).size_in_bytes > 0
    assert names(log, "6.log.deleted") == ["00000000000000000006.log.deleted"]


def test_roll_behind_the_end(log: LocalLog) -> None:
    put(log)
    assert log.roll(50).base_offset == 50
    with pytest.raises(RuntimeError, match="lower than start offset"):
        log.roll(0)


def test_roll_over_files_left_behind(log: LocalLog) -> None:
    put(log)
    Path(log.dir, "00000000000000000007.log").write_bytes(b"left behind")
    assert log.roll().size == 0


def test_locate(log: LocalLog) -> None:
    size = log.segments.first.size // 2
    assert log.locate(3) == (3, 2, size)
    assert log.locate(6) == (6, 6, 0)
    for offset in (-1, 7):
        with pytest.raises(KafkaError) as error:
            log.locate(offset)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_ends_with_the_bound(log: LocalLog) -> None:
    size = log.segments.first.size // 2
    bound = LogOffsetMetadata(3, 2, size)
    assert log.read(2, 10_000, bound, min_one_message=True).size_in_bytes == size
    assert log.read(0, 10_000, bound, min_one_message=True).size_in_bytes == 2 * size
    assert log.read(3, 10_000, bound, min_one_message=True).fetch_offset_metadata == bound


def test_truncation_removes_the_youngest_first(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []
    monkeypatch.setattr(LogSegment, "mark_deleted", lambda segment: order.append(segment.base_offset))
    log.truncate_to(1)
    assert order == [6, 4, 2], "a process that dies in between leaves no gap"
    assert (log.log_end_offset, log.segments.base_offsets) == (1, [0])


def test_full_truncation(log: LocalLog, disk: Disk) -> None:
    log.truncate_fully_and_start_at(100)
    assert (log.log_end_offset, log.segments.base_offsets) == (100, [100])
    disk.advance(100)
    assert names(log, ".deleted") == []
    assert names(log, ".log") == ["00000000000000000100.log"]


def test_directory_renamed_before_deleted_files_are_removed(log: LocalLog, disk: Disk) -> None:
    log.truncate_to(1)
    moved = log.dir + "-moved"
    os.rename(log.dir, moved)
    log.change_dir(moved)
    assert names(log, ".deleted")
    put(log)
    disk.advance(100)
    assert names(log, ".deleted") == []
    assert log.segments.active.records.path.startswith(log.dir)


def test_unlinking_happens_in_the_pool(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    disk = Disk(tmp_path, io_pool=pool)
    log = new_log(disk, file_delete_delay_ms="5")
    put(log)
    log.truncate_fully_and_start_at(9)
    disk.advance(5)
    assert names(log, ".deleted")
    pool.run_all()
    assert not names(log, ".deleted")


@pytest.mark.parametrize("what", ["segments", "snapshot"])
def test_a_directory_whose_files_cannot_be_unlinked_goes_offline(tmp_path: Path, what: str) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"unlink"}), failure=io_error)
    disk = Disk(tmp_path, fs=fs)
    log = new_log(disk, file_delete_delay_ms="100")
    if what == "segments":
        log.truncate_fully_and_start_at(5)
    else:
        log.delete_snapshot_later(os.path.join(log.dir, "00000000000000000000.snapshot.deleted"))
    fs.fail_at = fs.count + 1
    assert disk.log_dir.is_online
    disk.advance(100)
    assert not disk.log_dir.is_online


def test_a_file_that_is_gone_already_is_deleted(log: LocalLog, disk: Disk) -> None:
    log.truncate_fully_and_start_at(5)
    for name in names(log, ".deleted"):
        os.unlink(os.path.join(log.dir, name))
    disk.advance(100)
    assert disk.log_dir.is_online


def test_closed_log_holds_no_descriptor(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = disk.log({"segment.bytes": "100", "index.interval.bytes": "0"})
    for _ in range(5):
        append(log, b"x")
    log.read(0, 100, FetchIsolation.LOG_END, True)
    assert len(disk.environment.open_files) > 0
    log.close()
    assert len(disk.environment.open_files) == 0


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_roll_without_space_leaves_the_active_segment(tmp_path: Path, fail_at: int) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}))
    log = new_log(Disk(tmp_path, fs=fs), index_interval_bytes="0")
    for _ in range(3):
        put(log)
    before = sorted(os.listdir(log.dir))
    fs.fail_at, fs.failure, fs.for_good = fs.count + fail_at, disk_full, False
    with pytest.raises(DiskFullError):
        log.roll()
    assert sorted(os.listdir(log.dir)) == before
    assert log.segments.base_offsets == [0]
    put(log)
    log.roll()
    assert log.segments.base_offsets == [0, 4]
    assert log.locate(3).segment_base_offset == 0
    log.close()
