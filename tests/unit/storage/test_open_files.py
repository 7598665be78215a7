"""Descriptors are bounded, the least recently used leave first, and EMFILE evicts before it fails."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.open_files import HEADROOM, OpenFiles
from tests.support.logs import Disk, append, read_all

OVERRIDES = {"segment.bytes": "200", "index.interval.bytes": "0"}


class Holder:
    def __init__(self, name: str, in_use: bool = False) -> None:
        self.name = name
        self.in_use = in_use
        self.open = True

    def evict(self) -> bool:
        if not self.in_use:
            self.open = False
        return not self.in_use


def opened(files: OpenFiles, *names: str, in_use: bool = False) -> list[Holder]:
    holders = [Holder(name, in_use) for name in names]
    for holder in holders:
        files.opening(holder, lambda: None)
    return holders


def test_limit_evicts_the_least_recently_used() -> None:
    files = OpenFiles(limit=3)
    a, b, c = opened(files, "a", "b", "c")
    files.touch(a)
    (d,) = opened(files, "d")
    assert d.open
    assert not b.open
    assert len(files) <= 3
    assert {holder.name for holder in (a, c) if holder.open} <= {"a", "c"}


def test_what_is_in_use_stays() -> None:
    files = OpenFiles(limit=2)
    used = opened(files, "a", "b", in_use=True)
    opened(files, "c")
    assert all(holder.open for holder in used)
    assert len(files) == 3


def test_emfile_evicts_and_tries_once_more() -> None:
    files = OpenFiles()
    (a,) = opened(files, "a")
    attempts = []

    def open_it() -> str:
        attempts.append(a.open)
        if len(attempts) == 1:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return "opened"

    assert files.opening(Holder("b"), open_it) == "opened"
    assert attempts == [True, False]


def test_emfile_with_nothing_to_evict_is_an_error() -> None:
    def open_it() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with pytest.raises(OSError, match="Too many open files"):
        OpenFiles().opening(Holder("a"), open_it)


def test_other_errors_are_not_retried() -> None:
    files = OpenFiles()
    (a,) = opened(files, "a")

    def open_it() -> None:
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        files.opening(Holder("b"), open_it)
    assert a.open
    assert len(files) == 1


def test_what_is_not_registered_makes_room_too() -> None:
    files = OpenFiles()
    (a,) = opened(files, "a")
    answers = iter([OSError(errno.EMFILE, os.strerror(errno.EMFILE)), 7])

    def open_it() -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert files.retry(open_it) == 7
    assert not a.open
    assert len(files) == 0


def test_a_log_works_with_as_few_descriptors_as_the_kernel_leaves(tmp_path: Path) -> None:
    """The real thing: RLIMIT_NOFILE is lowered below what the logs would like to hold."""
    disk = Disk(tmp_path)
    logs = [disk.log(OVERRIDES, tp=TopicPartition("t", number)) for number in range(40)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 20, hard))
    try:
        for log in logs:
            for number in range(6):
                append(log, b"%d" % number)
            log.flush()
        found = [len(read_all(log)) for log in logs]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == [6] * len(logs)
    assert disk.environment.open_files.limit <= 60 - HEADROOM, "it has been learnt"
    assert disk.log_dir.is_online
    for log in logs:
        log.close()
