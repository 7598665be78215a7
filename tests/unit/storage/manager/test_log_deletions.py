"""Deleted logs: their directories are renamed off the event loop, and no new log may have the name before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.manager.log_manager import LogManager
from tests.support.disks.faulty_disk import FaultyFileSystem, io_error
from tests.support.disks.logs import DeferredIoPool, append, read_all, values_of
from tests.support.disks.managed_logs import Broker, create

A0 = TopicPartition("a", 0)


class Deleting:
    """A log manager with the log of A0, and a pool that does nothing until it is told."""

    def __init__(self, path: Path, fs: FaultyFileSystem | None = None) -> None:
        self.path = path
        self.pool = DeferredIoPool()
        self.broker = Broker(path, io_pool=self.pool, fs=fs)
        self.manager: LogManager = self.broker.start()
        create(self.manager, A0)
        self.pool.run_all()
        self.durable: list[OSError | None] = []

    def names(self) -> list[str]:
        """The directories of logs: their names, or for a renamed one the suffix."""
        found = (entry.name for entry in os.scandir(self.path) if entry.is_dir())
        return sorted(name if "." not in name else name.rpartition("-")[2] for name in found)


def test_the_directory_is_renamed_by_the_pool_and_removed_later(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    log = deleting.manager.async_delete(A0)
    assert log is not None
    assert log.is_closed
    assert deleting.manager.get_log(A0) is None
    deleting.manager.when_durable(deleting.durable.append)
    assert deleting.names() == ["a-0"]
    assert deleting.durable == []
    deleting.pool.run_all()
    assert deleting.names() == ["delete"]
    assert deleting.durable == [None]
    deleting.broker.disk.advance(log.config.file_delete_delay_ms)
    deleting.pool.run_all()
    assert deleting.names() == []


def test_the_broker_decides_how_long_a_directory_stays(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start({"a": {"file.delete.delay.ms": "1000"}})
    manager.update_broker_settings({"log.segment.delete.delay.ms": "5000"})
    create(manager, A0)
    manager.async_delete(A0)
    broker.disk.advance(4999)
    assert any(tmp_path.glob("a-0.*-delete"))
    broker.disk.advance(1)
    assert not any(tmp_path.glob("a-0.*-delete"))


def test_a_directory_found_at_start_stays_as_long(tmp_path: Path) -> None:
    (tmp_path / f"a-0.{'0' * 32}-delete").mkdir()
    broker = Broker(tmp_path)
    manager = broker.start({"a": {"file.delete.delay.ms": "1000"}})
    manager.update_broker_settings({"log.segment.delete.delay.ms": "70000"})
    broker.disk.advance(69_999)
    assert any(tmp_path.glob("a-0.*-delete"))
    broker.disk.advance(1)
    assert not any(tmp_path.glob("a-0.*-delete"))


def test_a_new_log_does_not_get_the_files_of_a_deleted_one_that_still_has_the_name(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    old = deleting.manager.get_log(A0)
    assert old is not None
    append(old, b"old")
    deleting.manager.async_delete(A0)
    new = deleting.manager.get_or_create_log(A0, b"\x08" * 16, is_new=True)
    assert deleting.names() == ["a-0", "delete"]
    append(new, b"new")
    deleting.pool.run_all()
    assert deleting.names() == ["a-0", "delete"]
    assert values_of(read_all(new)) == [b"new"]
    assert new.topic_id == b"\x08" * 16


def test_the_name_is_free_when_the_pool_has_renamed_the_directory(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    free: list[str] = []
    deleting.manager.deletions.when_free(str(tmp_path / "a-0"), lambda: free.append("at once"))
    deleting.manager.async_delete(A0)
    deleting.manager.deletions.when_free(str(tmp_path / "a-0"), lambda: free.append("later"))
    assert free == ["at once"]
    deleting.pool.run_all()
    assert free == ["at once", "later"]


def test_a_deleted_segment_of_a_deleted_log_is_not_looked_for_in_the_next_log(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    old = deleting.manager.get_log(A0)
    assert old is not None
    append(old, b"old")
    old.truncate_fully_and_start_at(0)
    deleting.broker.disk.advance(old.config.file_delete_delay_ms // 2)
    deleting.manager.async_delete(A0)
    new = deleting.manager.get_or_create_log(A0, b"\x08" * 16, is_new=True)
    append(new, b"new")
    new.truncate_fully_and_start_at(0)
    removed = tmp_path / "a-0" / "00000000000000000000.log.deleted"
    assert removed.exists()
    deleting.broker.disk.advance(old.config.file_delete_delay_ms // 2)
    deleting.pool.run_all()
    assert removed.exists()


@pytest.mark.parametrize("what", ["rename", "sync"])
def test_a_failed_rename_takes_the_directory_offline(tmp_path: Path, what: str) -> None:
    """Also one that a loss of power may undo: the log would be back."""
    fs = FaultyFileSystem(kinds=frozenset({what}), failure=io_error)
    deleting = Deleting(tmp_path, fs)
    failed: list[str] = []
    fs.fail_at = fs.count + 1
    deleting.manager.async_delete(A0, on_failure=lambda: failed.append("a-0"))
    assert failed == []
    failed_by_then: list[list[str]] = []
    deleting.manager.when_durable(lambda _: failed_by_then.append([*failed]))
    deleting.pool.run_all()
    assert failed == ["a-0"]
    assert failed_by_then == [["a-0"]]
    assert not deleting.manager.live_log_dirs
    deleting.manager.when_durable(deleting.durable.append)
    assert isinstance(deleting.durable[0], OSError)


def test_a_directory_that_fails_before_the_rename_has_not_lost_its_log(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    failed: list[str] = []
    log = deleting.manager.async_delete(A0, on_failure=lambda: failed.append("a-0"))
    assert log is not None
    log.log_dir.fail("a write has failed", OSError("failed"))
    assert failed == []
    deleting.pool.run_all()
    assert failed == ["a-0"]


def test_a_log_of_an_offline_directory_is_closed_and_keeps_its_name(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    log = deleting.manager.get_log(A0)
    assert log is not None
    log.log_dir.failure = OSError("failed")
    with pytest.raises(KafkaError):
        deleting.manager.deletions.delete(log)
    assert log.is_closed
    deleting.pool.run_all()
    assert deleting.names() == ["a-0"]


def test_a_stop_renames_what_the_pool_has_not(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path)
    deleting.manager.async_delete(A0)
    deleting.manager.shutdown()
    assert deleting.names() == ["delete"]
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert "a 0" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    deleting.pool.run_all()
    assert deleting.names() == ["delete"]
