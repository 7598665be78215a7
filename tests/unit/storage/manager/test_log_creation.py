"""Where a new log is created, and what happens when it cannot be. (Prepared logs: test_log_preparation.py.)"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.disk_space import LogDirFullError
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error, too_many_files
from tests.support.disks.managed_logs import Broker

A0 = TopicPartition("a", 0)


def logs_in(path: Path) -> list[str]:
    return [entry.name for entry in os.scandir(path) if entry.is_dir()]


def test_a_log_that_may_lie_in_an_offline_directory_is_not_created_again(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    manager.log_dirs[0].fail("the disk is gone", OSError())
    with pytest.raises(KafkaError) as refused:
        manager.get_or_create_log(A0)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get_or_create_log(A0, is_new=True).log_dir is manager.log_dirs[1]


def test_a_full_directory_stays_online_and_any_other_error_fails_it(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}), for_good=False)
    manager = Broker(tmp_path, fs=fs).start()
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    with pytest.raises(LogDirFullError):
        manager.get_or_create_log(A0, is_new=True)
    assert logs_in(tmp_path) == []
    assert manager.live_log_dirs
    fs.fail_at, fs.failure = fs.count + 1, io_error
    with pytest.raises(KafkaError):
        manager.get_or_create_log(A0, is_new=True)
    assert not manager.live_log_dirs


def test_a_log_is_created_in_the_next_directory_when_the_first_fails(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"make"}), failure=io_error, for_good=False)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    first, second = manager.log_dirs
    fs.fail_at = fs.count + 1
    assert manager.get_or_create_log(A0, is_new=True).log_dir is second
    assert not first.is_online
    assert manager.live_log_dirs == [second]
    assert logs_in(tmp_path / "1") == []


def test_nothing_is_left_of_a_log_that_is_created_in_the_next_directory(tmp_path: Path) -> None:
    """The next start finds one log of the partition; two would be refused."""
    fs = FaultyFileSystem(kinds=frozenset({"create"}), failure=io_error, for_good=False)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at = fs.count + 1
    assert manager.get_or_create_log(A0, is_new=True).log_dir is manager.log_dirs[1]
    assert not manager.log_dirs[0].is_online
    assert logs_in(tmp_path / "1") == []
    manager.shutdown()
    again = Broker(tmp_path / "1", tmp_path / "2").start()
    assert [log.topic_partition for log in again.logs_in(again.log_dirs[1])] == [A0]
    again.shutdown()


def test_a_log_of_which_a_part_cannot_be_removed_is_created_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}), failure=io_error, for_good=False)

    def fail(path: str) -> None:
        raise io_error()

    monkeypatch.setattr(fs, "remove_tree", fail)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at = fs.count + 1
    with pytest.raises(KafkaError) as refused:
        manager.get_or_create_log(A0, is_new=True)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert logs_in(tmp_path / "2") == []


def test_a_log_is_created_in_the_next_directory_when_the_first_is_full(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}), failure=disk_full, for_good=False)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at = fs.count + 1
    assert manager.get_or_create_log(A0, is_new=True).log_dir is manager.log_dirs[1]
    assert len(manager.live_log_dirs) == 2
    assert logs_in(tmp_path / "1") == []


def test_a_lack_of_descriptors_is_no_reason_for_another_directory(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}), failure=too_many_files, for_good=False)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at = fs.count + 1
    with pytest.raises(LogDirFullError):
        manager.get_or_create_log(A0, is_new=True)
    assert not manager.log_dirs[1].space.is_full
    assert logs_in(tmp_path / "2") == []


def test_a_log_is_refused_when_all_directories_fail(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"make"}), failure=io_error)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at = fs.count + 1
    with pytest.raises(KafkaError) as refused:
        manager.get_or_create_log(A0, is_new=True)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not manager.live_log_dirs


def test_a_log_is_not_created_outside_the_preferred_directory(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"make"}), failure=io_error, for_good=False)
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    manager.maybe_update_preferred_dir(A0, str(tmp_path / "1"))
    fs.fail_at = fs.count + 1
    with pytest.raises(KafkaError):
        manager.get_or_create_log(A0, is_new=True)
    assert logs_in(tmp_path / "2") == []


def test_a_future_log_has_a_name_of_its_own(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    log = manager.get_or_create_log(A0, is_new=True)
    manager.maybe_update_preferred_dir(A0, str(tmp_path / "2"))
    future = manager.get_or_create_log(A0, is_future=True)
    assert (log.is_future, future.is_future) == (False, True)
    assert logs_in(tmp_path / "1") == ["a-0"]
    assert [name.rpartition("-")[2] for name in logs_in(tmp_path / "2")] == ["future"]
