"""The process dies, or a disk fails, at every change of a file while a log moves to another directory.

Afterwards every acknowledged record is in one of the directories, and the move can be finished. One point
needs an operator, as in Apache Kafka: between the two renames of the replacement, both directories have the
partition's name, and the start refuses them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.storage.disk.log_dir import LogDirError
from tests.support.disks.faulty_disk import CrashError, FaultyFileSystem, crash, io_error
from tests.support.in_process.replication.moving import Moving
from tests.support.in_process.replication.replicas import TP

OVERRIDES = {"segment.bytes": "200", "index.interval.bytes": "100", "file.delete.delay.ms": "10"}
BEFORE = 5
MEANWHILE = 2


class Run:
    """A partition of some segments moves from the first directory to the second; the disk fails from then on."""

    def __init__(self, path: Path, fail_at: int = 0, failure: Callable[[], BaseException] = crash) -> None:
        self.fs = FaultyFileSystem(failure=failure, for_good=False)
        self.moving = Moving(path, OVERRIDES, fs=self.fs)
        self.moving.lead()
        self.acknowledged: list[bytes | None] = []
        for number in range(BEFORE):
            self.append(b"value %d" % number)
        self.moving.log().flush()
        self.begin = self.fs.count
        self.fs.fail_at = self.begin + fail_at if fail_at else 0

    def append(self, value: bytes) -> None:
        before = len(self.acknowledged)
        if self.moving.replicas.manager.hosted(TP) is not None:
            self.moving.append(value)
        hosted = self.moving.replicas.manager.hosted(TP)
        if hosted is not None and hosted.log is not None and hosted.log.log_end_offset > before:
            self.acknowledged.append(value)

    def go(self) -> None:
        moving = self.moving
        moving.alter(1)
        for number in range(MEANWHILE):
            moving.replicas.advance(1)
            self.append(b"meanwhile %d" % number)
        moving.settle()
        moving.replicas.advance(20)
        moving.log_manager.shutdown()

    def release(self) -> None:
        for log_dir in self.moving.log_manager.log_dirs:
            log_dir.unlock()


def plain_dirs(path: Path) -> list[Path]:
    return [path / str(number) / "t-0" for number in range(3) if (path / str(number) / "t-0").exists()]


def check_after_restart(run: Run, path: Path) -> None:
    if len(plain_dirs(path)) == 2:
        with pytest.raises(LogDirError, match="Duplicate log directories for t-0"):
            Moving(path, OVERRIDES)
        shutil.rmtree(path / "0" / "t-0")  # the new log is complete: it replaced the old one after its last record
    again = Moving(path, OVERRIDES)
    again.lead(epoch=1)
    again.settle()
    assert again.values()[: len(run.acknowledged)] == run.acknowledged
    assert again.alter(2) == ErrorCode.NONE
    again.settle()
    again.append(b"life goes on")
    assert again.values()[-1] == b"life goes on"
    assert again.where() == 2
    again.replicas.advance(20)
    assert [sorted(os.listdir(path / str(number)), key=len)[-1] == "t-0" for number in range(2)] == [False, False]
    again.log_manager.shutdown()


def changes(path: Path) -> int:
    run = Run(path)
    run.go()
    assert len(run.acknowledged) == BEFORE + MEANWHILE
    shutil.rmtree(path)
    return run.fs.count - run.begin


def test_death_at_every_change(tmp_path: Path) -> None:
    count = changes(tmp_path / "counting")
    assert count > 50
    refused = 0
    for point in range(1, count + 1):
        path = tmp_path / f"run-{point}"
        run = Run(path, point)
        with pytest.raises(CrashError):
            run.go()
        run.release()
        refused += len(plain_dirs(path)) == 2
        check_after_restart(run, path)
        shutil.rmtree(path)
    assert refused, "the place between the renames was not visited"


def test_a_disk_failure_at_every_change(tmp_path: Path) -> None:
    """One directory is offline afterwards; the logs in the other one are served, and no acknowledged record is lost."""
    count = changes(tmp_path / "counting")
    for point in range(1, count + 1):
        path = tmp_path / f"run-{point}"
        run = Run(path, point, io_error)
        run.go()
        offline = [log_dir for log_dir in run.moving.log_manager.log_dirs if not log_dir.is_online]
        assert len(offline) <= 1
        run.release()
        check_after_restart(run, path)
        shutil.rmtree(path)
