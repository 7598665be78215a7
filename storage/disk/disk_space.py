"""Free space on the disk of a log directory: appends stop before the disk is full, and resume when there is space.

Appends leave a reserve for the metadata tree, the checkpoints and the indexes: the smaller of `RESERVE_BYTES_MAX` and
1/`RESERVE_SHARE` of the file system. `statvfs` is not called for every append: only after a part of the space found was
appended, and every `CHECK_EVERY_MS`, because other processes write to the disk too.

A write can still fail for lack of space (another process filled the disk; a quota, which `statvfs` does not show). The
writer then undoes the write, raises `DiskFullError` and calls `ran_out`. A full directory stays online: reads, small
files and deletions continue. A lack of descriptors counts as a lack of space.

Kafka has no such state: there, the first write that finds no space takes the directory offline.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.descriptors import is_out_of_descriptors

if TYPE_CHECKING:
    from odradek.storage.disk.file_system import FileSystem
    from odradek.timer.clock import Clock

RESERVE_BYTES_MAX: Final = 64 * 1024 * 1024
RESERVE_SHARE: Final = 16

CHECK_EVERY_BYTES_MAX: Final = 16 * 1024 * 1024
CHECK_EVERY_MS: Final = 1_000

REPORT_EVERY_MS: Final = 60_000
"""A full directory logs at most one line per minute."""

_NO_SPACE: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
_PART: Final = 4
"""A quarter of the free space may be appended before the next check: several directories may share a disk."""
_RESUME_SHARE: Final = 8
"""Appends resume when 1/8 of the reserve is free above it, so that the state does not flap."""

logger = logging.getLogger(__name__)


class DiskFullError(OSError):
    """A write found no space and was undone: it may be retried."""


class LogDirFullError(KafkaError):
    """A request needs space in a full directory. Clients get KAFKA_STORAGE_ERROR, which they retry."""

    def __init__(self, path: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory {path} is full")


def is_no_space(error: OSError) -> bool:
    """Whether a write failed for lack of space or of descriptors, not because of a broken disk."""
    return error.errno in _NO_SPACE or is_out_of_descriptors(error)


class DiskSpace:
    """The free space of one log directory."""

    __slots__ = ("_budget", "_clock", "_fs", "_is_reported", "_path", "_refused", "_reported_ms", "is_full")

    def __init__(self, path: str, fs: FileSystem, clock: Clock) -> None:
        self.is_full = False
        self._path = path
        self._fs = fs
        self._clock = clock
        self._budget = 0
        """The bytes that may be appended before the next check."""
        self._refused = 0
        self._reported_ms: int | None = None
        self._is_reported = False

    def take(self, size: int) -> bool:
        """Whether an append of `size` bytes leaves the reserve free. Every append calls it."""
        if size <= self._budget:
            self._budget -= size
            return True
        return self._take_after_check(size)

    def check(self) -> int:
        """Measure the free space; returns the bytes above the reserve, negative if a part of the reserve is used."""
        try:
            available, total = self._fs.space(self._path)
        except OSError:
            available = total = 0
        if not total:  # some network file systems do not report it
            available = 2**62
        reserve = min(RESERVE_BYTES_MAX, total // RESERVE_SHARE)
        room = available - reserve
        if room < max(1, reserve // _RESUME_SHARE):
            self._become_full(f"{available} bytes are free, of which {reserve} are kept in reserve")
        else:
            self._become_writable(min(max(room // _PART, 0), CHECK_EVERY_BYTES_MAX))
        return room

    def ran_out(self, error: OSError) -> None:
        """Mark the directory as full after a write found no space, whatever `statvfs` reports."""
        self._become_full(str(error), "has no descriptor for a file" if is_out_of_descriptors(error) else "is full")

    def _take_after_check(self, size: int) -> bool:
        if self.is_full or self.check() < size:
            self._refused += 1
            return False
        self._budget = max(0, self._budget - size)
        return True

    def _become_full(self, reason: str, what: str = "is full") -> None:
        self.is_full = True
        self._budget = 0
        now_ms = self._clock.monotonic_ms()
        if self._reported_ms is None or now_ms - self._reported_ms >= REPORT_EVERY_MS:
            self._reported_ms = now_ms
            self._is_reported = True
            logger.error(
                "Log directory %s %s: %s. Records are refused with KAFKA_STORAGE_ERROR until there is room "
                "(%d appends so far); reading goes on.",
                self._path,
                what,
                reason,
                self._refused,
            )

    def _become_writable(self, budget: int) -> None:
        self._budget = budget
        self.is_full = False
        if self._is_reported:
            self._is_reported = False
            logger.info("Log directory %s has room again, after %d refused appends", self._path, self._refused)
            self._refused = 0
