"""Logs whose files a thread makes before they are created."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error
from tests.support.disks.logs import DeferredIoPool, append, read_all, values_of
from tests.support.disks.managed_logs import Broker
from tests.support.disks.unreadable import make_unexaminable

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
TOPIC_ID = b"\x07" * 16
DIRECTORY_CHANGES = frozenset({"create", "make", "rename", "unlink", "remove"})


class Preparing:
    def __init__(self, *paths: Path, fs: FaultyFileSystem | None = None) -> None:
        self.paths = paths
        self.pool = DeferredIoPool()
        self.fs = FaultyFileSystem(kinds=DIRECTORY_CHANGES) if fs is None else fs
        self.broker = Broker(*paths, io_pool=self.pool, fs=self.fs)
        self.manager = self.broker.start()
        self.pool.run_all()
        self.done = 0

    def prepare(self, topic_partition: TopicPartition = A0, *, is_new: bool = True) -> None:
        def done() -> None:
            self.done += 1

        self.manager.prepare_log(topic_partition, done, is_new=is_new)

    def create(self, topic_partition: TopicPartition = A0) -> UnifiedLog:
        return self.manager.get_or_create_log(topic_partition, TOPIC_ID, is_new=True)

    def names(self, index: int = 0) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.paths[index]) if entry.is_dir())


def test_a_prepared_log_is_created_without_a_change_of_directories(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare()
    assert preparing.done == 0
    preparing.pool.run_all()
    assert preparing.done == 1
    changes = preparing.fs.count
    log = preparing.create()
    append(log, b"x")
    assert preparing.fs.count == changes
    assert values_of(read_all(log)) == [b"x"]
    preparing.manager.shutdown()
    again = Broker(tmp_path).start()
    found = again.get_log(A0)
    assert found is not None
    assert values_of(read_all(found)) == [b"x"]
    assert found.topic_id == TOPIC_ID
    again.shutdown()


def test_a_log_is_prepared_once(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare()
    preparing.prepare()
    assert preparing.done == 1
    assert len(preparing.pool.pending) == 1
    preparing.pool.run_all()
    preparing.prepare()
    assert preparing.done == 3
    preparing.create()


def test_a_prepared_log_has_the_files_and_the_state_of_another_new_log(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare(A0)
    preparing.pool.run_all()
    prepared, other = preparing.create(A0), preparing.create(A1)
    assert sorted(os.listdir(prepared.dir)) == sorted(os.listdir(other.dir))
    for log in (prepared, other):
        log.assign_epoch_start_offset(0, 0)
        append(log, b"x")
        log.roll()
    preparing.pool.run_all()
    assert sorted(os.listdir(prepared.dir)) == sorted(os.listdir(other.dir))
    for name in ("recovery_point", "log_start_offset", "high_watermark", "latest_epoch"):
        assert getattr(prepared, name) == getattr(other, name)
    assert prepared.state.producers.map_end_offset == other.state.producers.map_end_offset


def test_what_is_not_created_is_removed(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare()
    preparing.pool.run_all()
    assert preparing.names() == ["a-0"]
    removed: list[bool] = []
    preparing.manager.discard_prepared_logs([A0, A1], lambda: removed.append(True))
    assert removed == []
    preparing.pool.run_all()
    assert removed == [True]
    assert preparing.names() == []


def test_what_is_created_is_not_removed(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare()
    preparing.pool.run_all()
    log = preparing.create()
    removed: list[bool] = []
    preparing.manager.discard_prepared_logs([A0], lambda: removed.append(True))
    assert removed == [True]
    append(log, b"x")
    assert values_of(read_all(log)) == [b"x"]


def test_a_directory_that_exists_is_loaded_and_not_touched(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    append(preparing.create(), b"kept")
    preparing.pool.run_all()
    preparing.manager._logs.clear()  # as after a start that could not read the directory
    preparing.prepare()
    preparing.pool.run_all()
    assert preparing.done == 1
    preparing.manager.discard_prepared_logs([A0], lambda: None)
    preparing.pool.run_all()
    assert values_of(read_all(preparing.create())) == [b"kept"]


@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_directory_that_cannot_be_examined_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_prepared: bool
) -> None:
    preparing = Preparing(tmp_path, fs=FaultyFileSystem(kinds=frozenset({"make"}), failure=io_error))
    append(preparing.create(), b"kept")
    preparing.pool.run_all()
    preparing.manager._logs.clear()  # as after a start that could not read the directory
    preparing.fs.fail_at = preparing.fs.count + 1
    with monkeypatch.context() as patches:
        make_unexaminable(patches, tmp_path / "a-0")
        if is_prepared:
            preparing.prepare()
            preparing.pool.run_all()
            preparing.manager.discard_prepared_logs([A0], lambda: None)
            preparing.pool.run_all()
        else:
            with pytest.raises(KafkaError):
                preparing.create()
            assert preparing.manager.live_log_dirs == []
    preparing.manager.shutdown()
    again = Broker(tmp_path).start()
    found = again.get_log(A0)
    assert found is not None
    assert values_of(read_all(found)) == [b"kept"]
    again.shutdown()


def test_a_log_is_prepared_when_its_deleted_namesake_is_renamed(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    append(preparing.create(), b"old")
    preparing.pool.run_all()
    preparing.manager.async_delete(A0)
    preparing.prepare()
    assert preparing.names() == ["a-0"]
    preparing.pool.run_all()
    assert preparing.done == 1
    changes = preparing.fs.count
    log = preparing.create()
    assert preparing.fs.count == changes
    append(log, b"new")
    assert values_of(read_all(log)) == [b"new"]


def test_prepared_logs_count_when_directories_are_chosen(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.prepare(A0)
    preparing.prepare(A1)
    preparing.pool.run_all()
    assert sorted([preparing.names(0), preparing.names(1)]) == [["a-0"], ["a-1"]]


def test_a_directory_that_was_preferred_meanwhile_is_used(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.prepare()
    preparing.pool.run_all()
    assert preparing.names(0) == ["a-0"]
    preparing.manager.maybe_update_preferred_dir(A0, str(tmp_path / "2"))
    assert preparing.create().log_dir.path == str(tmp_path / "2")
    preparing.pool.run_all()
    assert (preparing.names(0), preparing.names(1)) == ([], ["a-0"])


def test_a_directory_that_fails_meanwhile_is_not_used(tmp_path: Path) -> None:
    """Nothing is left there: after a repair, the next start finds one log of the partition."""
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.prepare()
    preparing.pool.run_all()
    preparing.manager.log_dirs[0].fail("the disk is gone", OSError())
    assert preparing.create().log_dir.path == str(tmp_path / "2")
    assert (preparing.names(0), preparing.names(1)) == ([], ["a-0"])
    preparing.pool.run_all()
    preparing.manager.shutdown()
    again = Broker(tmp_path / "1", tmp_path / "2").start()
    assert [log.topic_partition for log in again.all_logs()] == [A0]
    again.shutdown()


@pytest.mark.parametrize("is_offline", [True, False])
def test_a_prepared_log_that_cannot_be_removed_is_created_nowhere_else(tmp_path: Path, is_offline: bool) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"remove"}), failure=io_error)
    preparing = Preparing(tmp_path / "1", tmp_path / "2", fs=fs)
    preparing.prepare()
    preparing.pool.run_all()
    first, second = preparing.manager.log_dirs
    if is_offline:
        first.fail("the disk is gone", OSError())
    else:
        preparing.manager.maybe_update_preferred_dir(A0, second.path)
    fs.fail_at = fs.count + 1
    with pytest.raises(KafkaError) as refused:
        preparing.create()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (preparing.names(0), preparing.names(1)) == (["a-0"], [])
    assert preparing.manager.live_log_dirs == [second]


@pytest.mark.parametrize("is_mended", [True, False])
def test_what_a_failed_preparation_has_left_is_removed_before_another_directory_is_used(
    tmp_path: Path, is_mended: bool
) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create", "remove"}), failure=io_error)
    preparing = Preparing(tmp_path / "1", tmp_path / "2", fs=fs)
    fs.fail_at = fs.count + 1
    preparing.prepare()
    preparing.pool.run_all()
    assert (preparing.done, preparing.names(0)) == (1, ["a-0"])
    preparing.manager.log_dirs[0].fail("the disk is gone", OSError())
    if is_mended:
        fs.mend()
        assert preparing.create().log_dir.path == str(tmp_path / "2")
        assert (preparing.names(0), preparing.names(1)) == ([], ["a-0"])
    else:
        with pytest.raises(KafkaError):
            preparing.create()
        assert (preparing.names(0), preparing.names(1)) == (["a-0"], [])


def test_what_is_not_created_is_removed_from_a_directory_that_fails_meanwhile(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.prepare()
    preparing.pool.run_all()
    preparing.manager.log_dirs[0].fail("the disk is gone", OSError())
    preparing.manager.discard_prepared_logs([A0], lambda: None)
    preparing.pool.run_all()
    assert preparing.names() == []


def test_a_full_disk_refuses_the_log_and_leaves_nothing(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}), failure=disk_full)
    preparing = Preparing(tmp_path, fs=fs)
    fs.fail_at = fs.count + 2
    preparing.prepare()
    preparing.pool.run_all()
    assert preparing.done == 1
    assert preparing.names() == []
    with pytest.raises(KafkaError):
        preparing.create()
    assert preparing.names() == []
    assert preparing.manager.live_log_dirs


def test_a_log_that_may_lie_in_an_offline_directory_is_not_prepared(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.manager.log_dirs[0].fail("the disk is gone", OSError())
    preparing.prepare(is_new=False)
    assert preparing.done == 1
    assert preparing.names(1) == []


def test_a_stop_removes_what_is_not_created(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path)
    preparing.prepare()
    preparing.pool.run_all()
    preparing.manager.shutdown()
    assert preparing.names() == []


def test_a_stop_removes_what_is_not_created_from_a_directory_that_failed(tmp_path: Path) -> None:
    preparing = Preparing(tmp_path / "1", tmp_path / "2")
    preparing.prepare()
    preparing.pool.run_all()
    preparing.manager.log_dirs[0].fail("the disk is gone", OSError())
    preparing.manager.shutdown()
    assert preparing.names() == []


def test_a_stop_that_cannot_remove_what_is_not_created_is_clean_all_the_same(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"remove"}), failure=io_error)
    preparing = Preparing(tmp_path, fs=fs)
    preparing.prepare()
    preparing.pool.run_all()
    fs.fail_at = fs.count + 1
    preparing.manager.shutdown()
    assert preparing.names() == ["a-0"]
    assert (tmp_path / ".kafka_cleanshutdown").exists()
