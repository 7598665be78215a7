"""Descriptors are bounded, the least recently used are closed first, and EMFILE evicts before it fails."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.descriptors import DescriptorLimits
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import HEADROOM, OpenFiles
from odradek.storage.segment.file_records import FileRecords, FileRegion
from tests.support.disks.logs import Disk, append, read_all
from tests.support.disks.open_descriptors import count_after_collection

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
    files.mark_used(a)
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
    """With real descriptors: RLIMIT_NOFILE is below the number that the logs would hold."""
    disk = Disk(tmp_path)
    logs = [disk.log(OVERRIDES, tp=TopicPartition("t", number)) for number in range(40)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = count_after_collection()
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
    assert disk.environment.open_files.limit <= 60 - HEADROOM, "the limit is lowered"
    assert disk.log_dir.is_online
    for log in logs:
        log.close()


class Reserve:
    """Open files with a reserve: descriptors from `first` on are reserved for the broker."""

    def __init__(self) -> None:
        free = [os.dup(0) for _ in range(3)]
        for fd in free:
            os.close(fd)
        self.first = free[-1]
        """Two lower numbers are free."""
        self.files = OpenFiles(descriptors=DescriptorLimits(log_files=self.first))
        self.held: list[int] = []

    def open(self) -> int:
        return os.open(os.devnull, os.O_RDONLY)

    def hold(self) -> None:
        self.held.append(self.open())

    def close(self) -> None:
        for fd in self.held:
            os.close(fd)


@pytest.fixture
def reserve() -> Iterator[Reserve]:
    reserve = Reserve()
    yield reserve
    reserve.close()


def test_a_descriptor_of_the_reserve_has_others_closed(reserve: Reserve) -> None:
    (idle,) = opened(reserve.files, "idle")
    reserve.hold()
    reserve.held.append(reserve.files.retry(reserve.open))
    assert idle.open, "there were lower numbers"
    reserve.held.append(reserve.files.retry(reserve.open))
    assert not idle.open
    assert reserve.held[-1] >= reserve.first, "the broker itself gets a reserved one"


def test_a_client_gets_no_descriptor_of_the_reserve(reserve: Reserve) -> None:
    client = Holder("client")
    reserve.hold()
    reserve.held.append(reserve.files.opening_for_client(client, reserve.open))
    reserve.files.closed(client)
    with pytest.raises(OSError, match="Too many open files"):
        reserve.files.opening_for_client(client, reserve.open)
    assert len(reserve.files) == 0
    probe = reserve.open()
    assert probe == reserve.first, "nothing was left open"
    os.close(probe)


def test_a_file_that_the_log_opened_in_the_reserve_is_opened_anew_for_a_client(
    reserve: Reserve, tmp_path: Path
) -> None:
    """Else a client that reads slowly would hold a part of the reserve."""
    records = FileRecords.create(str(tmp_path / "00.log"), OsFileSystem(), reserve.files)
    reserve.files.closed(records)
    assert records.evict()
    for _ in range(2):
        reserve.hold()
    records.pin()
    records.unpin()
    assert records.fileno() >= reserve.first
    region = FileRegion(records, 0, 0)
    region.hold()
    assert records.fileno() >= reserve.first, "a read of the broker itself"
    region.release()
    with pytest.raises(OSError, match="Too many open files"):
        region.retain()
    os.close(reserve.held.pop())
    region.retain()
    assert records.fileno() < reserve.first
    region.release()
    records.close()


def test_a_client_gets_what_another_file_gives_up(reserve: Reserve) -> None:
    client = Holder("client")
    reserve.hold()
    given_up = reserve.open()

    class Idle:
        def evict(self) -> bool:
            os.close(given_up)
            return True

    reserve.files.opening(Idle(), lambda: given_up)
    fd = reserve.files.opening_for_client(client, reserve.open)
    reserve.held.append(fd)
    assert fd == given_up
    assert len(reserve.files) == 1
