"""The space that appends may use, the interval of the checks, and the log lines."""

from __future__ import annotations

import errno
import logging

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.storage.disk.disk_space import (
    CHECK_EVERY_BYTES_MAX,
    REPORT_EVERY_MS,
    RESERVE_BYTES_MAX,
    RESERVE_SHARE,
    DiskSpace,
    LogDirFullError,
    is_no_space,
)
from odradek.storage.disk.file_system import OsFileSystem
from odradek.timer.clock import ManualClock

LARGE = 2**40
SMALL = 16 * 1024 * 1024
SMALL_RESERVE = SMALL // RESERVE_SHARE


class Gauge(OsFileSystem):
    """A disk of a given size."""

    def __init__(self, available: int, total: int) -> None:
        self.available = available
        self.total = total
        self.checks = 0
        self.broken = False

    def space(self, path: str) -> tuple[int, int]:
        self.checks += 1
        if self.broken:
            raise OSError(errno.ENOENT, "gone")
        return self.available, self.total


def space_of(available: int, total: int) -> tuple[DiskSpace, Gauge, ManualClock]:
    disk, clock = Gauge(available, total), ManualClock()
    return DiskSpace("/data", disk, clock), disk, clock


@pytest.mark.parametrize(("total", "reserve"), [(LARGE, RESERVE_BYTES_MAX), (SMALL, SMALL_RESERVE)])
def test_appends_stop_at_the_reserve(total: int, reserve: int) -> None:
    room = reserve // 2
    assert space_of(reserve + room, total)[0].take(room)
    assert not space_of(reserve + room, total)[0].take(room + 1)


def test_the_disk_is_not_asked_at_every_append() -> None:
    space, disk, _ = space_of(LARGE, 2 * LARGE)
    for _ in range(1_000):
        assert space.take(CHECK_EVERY_BYTES_MAX // 1_000)
    assert disk.checks <= 2
    assert space.take(CHECK_EVERY_BYTES_MAX)
    assert disk.checks <= 3


def test_appends_between_two_checks_cannot_fill_the_disk() -> None:
    """Three directories on one disk, without shared state."""
    room = 4_000_000
    disk, clock = Gauge(RESERVE_BYTES_MAX + room, LARGE), ManualClock()
    spaces = [DiskSpace(f"/data/{number}", disk, clock) for number in range(3)]
    for space in spaces:
        assert space.take(1)
    disk.checks = 0
    taken = 0
    for space in spaces:
        while disk.checks == 0 and space.take(10_000):
            taken += 10_000
        disk.checks = 0
    assert taken <= room


def test_a_batch_that_does_not_fit_leaves_room_for_smaller_ones() -> None:
    space, _, _ = space_of(SMALL_RESERVE + 1_000_000, SMALL)
    assert not space.take(2_000_000)
    assert not space.is_full
    assert space.take(1_000)


def test_full_until_a_check_finds_a_share_of_the_reserve() -> None:
    space, disk, _ = space_of(SMALL_RESERVE - 1, SMALL)
    assert not space.take(1)
    assert space.is_full
    disk.available = LARGE
    checks = disk.checks
    assert not space.take(1), "the space was not checked again"
    assert disk.checks == checks
    disk.available = SMALL_RESERVE + SMALL_RESERVE // 8 - 1
    space.check()
    assert space.is_full
    disk.available += 1
    space.check()
    assert not space.is_full
    assert space.take(1)


def test_after_a_write_without_space_the_directory_is_full_until_the_next_check() -> None:
    """`statvfs` does not show a quota."""
    space, _, _ = space_of(LARGE, LARGE)
    assert space.take(1)
    space.ran_out(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not space.take(1)
    space.check()
    assert space.take(1)


@pytest.mark.parametrize("broken", [True, False], ids=["does not answer", "does not know its size"])
def test_file_system_that_says_nothing_is_not_full(broken: bool) -> None:
    space, disk, _ = space_of(0, 0)
    disk.broken = broken
    assert space.take(10**9)


def test_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    space, disk, clock = space_of(0, SMALL)
    with caplog.at_level(logging.INFO):
        for _ in range(50):
            assert not space.take(1)
            space.check()
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("Log directory /data is full: 0 bytes are free, of which")
        clock.advance(REPORT_EVERY_MS - 1)
        space.check()
        assert len(caplog.messages) == 1
        clock.advance(1)
        space.check()
        assert "(50 appends so far)" in caplog.messages[1]
        for available in (SMALL, 0, SMALL):
            disk.available = available
            space.check()
        assert caplog.messages[2:] == ["Log directory /data has room again, after 50 refused appends"]


def test_errors() -> None:
    assert is_no_space(OSError(errno.ENOSPC, ""))
    assert is_no_space(OSError(errno.EDQUOT, ""))
    assert not is_no_space(OSError(errno.EIO, ""))
    error = LogDirFullError("/data")
    assert (error.code, error.message) == (ErrorCode.KAFKA_STORAGE_ERROR, "The log directory /data is full")
