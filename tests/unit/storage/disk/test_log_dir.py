"""A log directory: its lock, its meta.properties, its clean-shutdown marker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.storage.disk.log_dir import LogDir, LogDirError, check_meta_properties
from tests.support.disks.faulty_disk import NEEDS_ROOM, FaultyFileSystem, disk_full
from tests.support.disks.logs import DeferredIoPool, Disk
from tests.support.disks.unreadable import make_unexaminable


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDir:
    return Disk(tmp_path).log_dir


LOCK_FROM_ANOTHER_PROCESS = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(7)
"""


def locked_for_others(path: Path) -> bool:
    return subprocess.run([sys.executable, "-c", LOCK_FROM_ANOTHER_PROCESS, str(path)], check=False).returncode == 7


def test_lock_excludes_other_processes_and_other_brokers_of_this_one(tmp_path: Path, log_dir: LogDir) -> None:
    log_dir.lock()
    assert locked_for_others(tmp_path / ".lock")
    with pytest.raises(LogDirError, match=r"Failed to acquire lock on file \.lock"):
        Disk(tmp_path).log_dir.lock()
    assert locked_for_others(tmp_path / ".lock"), "the refused attempt must not have released the lock"
    log_dir.unlock()
    assert not locked_for_others(tmp_path / ".lock")
    again = Disk(tmp_path).log_dir
    again.lock()
    again.unlock()
    again.unlock()


def test_clean_shutdown_marker_is_valid_for_one_start(tmp_path: Path, log_dir: LogDir) -> None:
    assert not log_dir.take_clean_shutdown()
    log_dir.mark_clean_shutdown()
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    assert log_dir.take_clean_shutdown()
    assert not log_dir.take_clean_shutdown()


def test_marker_that_cannot_be_examined_is_removed(
    tmp_path: Path, log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would be valid for the start after this one."""
    log_dir.mark_clean_shutdown()
    with monkeypatch.context() as patches:
        make_unexaminable(patches, tmp_path / ".kafka_cleanshutdown")
        log_dir.take_clean_shutdown()
    assert not log_dir.take_clean_shutdown()


def test_empty_marker_of_an_older_release_counts(tmp_path: Path, log_dir: LogDir) -> None:
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert log_dir.take_clean_shutdown()


def test_meta_properties_round_trip_and_are_rewritten_only_when_changed(tmp_path: Path, log_dir: LogDir) -> None:
    assert log_dir.read_meta_properties() is None
    properties = {"version": "0", "broker.id": "1", "cluster.id": "abc"}
    log_dir.write_meta_properties(properties)
    assert log_dir.read_meta_properties() == properties
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Sat Nov 21 2026\nversion = 0\nbroker.id=1\ncluster.id=abc\n")
    log_dir.write_meta_properties(properties)
    assert path.read_text().startswith("#\n#Sat")


@pytest.mark.parametrize("content", [b"broker.id=\\u12", b"\\u"])
def test_damaged_meta_properties_are_an_error_of_the_directory(tmp_path: Path, log_dir: LogDir, content: bytes) -> None:
    (tmp_path / "meta.properties").write_bytes(content)
    with pytest.raises(OSError, match="not a properties file"):
        log_dir.read_meta_properties()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"version": "1"}, "formatted for KRaft"),
        ({"broker.id": "2"}, "Configured broker.id 1 doesn't match stored broker.id 2"),
        ({"cluster.id": "other"}, "The Cluster ID mine doesn't match stored clusterId other"),
    ],
)
def test_foreign_directories_are_refused(found: dict[str, str], message: str) -> None:
    with pytest.raises(LogDirError, match=message):
        check_meta_properties(found, path="/data", broker_id=1, cluster_id="mine")


@pytest.mark.parametrize("found", [None, {}, {"broker.id": "1", "cluster.id": "mine"}])
def test_own_and_new_directories_are_accepted(found: dict[str, str] | None) -> None:
    check_meta_properties(found, path="/data", broker_id=1, cluster_id="mine")


def test_on_failure_is_called_once(log_dir: LogDir) -> None:
    told: list[LogDir] = []
    log_dir.on_failure = told.append
    log_dir.fail("x", OSError(5, "first"))
    log_dir.fail("x", OSError(5, "second"))
    assert told == [log_dir]
    assert not log_dir.is_online
    assert log_dir.failure is not None
    assert log_dir.failure.strerror == "first"


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Disk(tmp_path / "file").log_dir.create()


def test_failure_drops_what_is_queued(tmp_path: Path) -> None:
    """Its logs are dropped from memory: a checkpoint written now would be empty."""
    pool = DeferredIoPool()
    log_dir = Disk(tmp_path, io_pool=pool).log_dir
    log_dir.sync_queue.write(log_dir.file("first"), b"on its way")
    log_dir.sync_queue.write(log_dir.file("checkpoint"), lambda: b"")
    answers: list[OSError | None] = []
    log_dir.sync_queue.when_durable(answers.append)
    failure = OSError(5, "Input/output error")
    log_dir.fail("test", failure)
    assert answers == [failure]
    pool.run_all()
    assert not (tmp_path / "checkpoint").exists()


def test_check_space_writes_the_files_that_had_no_space(tmp_path: Path) -> None:
    fs = FaultyFileSystem(1, disk_full, kinds=NEEDS_ROOM)
    log_dir = Disk(tmp_path, fs=fs).log_dir
    log_dir.sync_queue.write(log_dir.file("a"), b"1")
    assert log_dir.is_online
    assert log_dir.space.is_full
    fs.mend()
    log_dir.check_space()
    assert (tmp_path / "a").read_bytes() == b"1"
    assert not log_dir.space.is_full


def test_marker_of_a_clean_stop_does_not_come_back_with_the_power(tmp_path: Path) -> None:
    fs = FaultyFileSystem()
    log_dir = Disk(tmp_path, fs=fs).log_dir
    log_dir.mark_clean_shutdown()
    fs.operations.clear()
    assert log_dir.take_clean_shutdown()
    assert fs.operations == ["unlink .kafka_cleanshutdown", "sync dir"]


def test_names_of_new_directories_are_made_durable(tmp_path: Path) -> None:
    fs = FaultyFileSystem()
    disk = Disk(tmp_path / "a" / "b", fs=fs)
    disk.log_dir.create()
    assert fs.operations == ["make dir", "sync dir", "sync dir"]
    disk.log_dir.create()
    assert len(fs.operations) == 3
