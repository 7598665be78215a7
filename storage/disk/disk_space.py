"""Room on the disk of a log directory: appends stop before it is used up, and go on by themselves when there is some.

The last bytes of a disk are worth more to the metadata tree, the checkpoints and the indexes than to another batch. A
reserve is therefore left alone by appends: the smaller of `RESERVE_BYTES_MAX` and a `RESERVE_SHARE`th of the file
system. How much is free is not asked at every append but after so many appended bytes that they cannot have used up
what was found, and every `LOOK_EVERY_MS`, because others write to the disk as well.

If a write fails for lack of space all the same (somebody else filled the disk; a quota, which `statvfs` does not show),
whoever wrote undoes what it had begun, raises `DiskFullError` and reports it to `ran_out`. A full directory is online:
it is read, and its small files and deletions go on. A file that cannot be opened because there are too many is the same
to whoever writes, and is over as soon.

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

LOOK_EVERY_BYTES_MAX: Final = 16 * 1024 * 1024
LOOK_EVERY_MS: Final = 1_000

REPORT_EVERY_MS: Final = 60_000
"""A full disk is worth one line a minute, however many appends are refused."""

_NO_SPACE: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
_PART: Final = 4
"""Of the room found, this part may be appended before looking again: several directories may share a disk."""
_RESUME_SHARE: Final = 8
"""Appends go on when this share of the reserve is free above it, so that the state does not flap."""

logger = logging.getLogger(__name__)


class DiskFullError(OSError):
    """There was no space for a write. Everything is as it was before: it may be tried again."""


class LogDirFullError(KafkaError):
    """The answer to a request that needs room where there is none. Unlike an offline directory, it may have some soon.

    To clients it is KAFKA_STORAGE_ERROR, which they retry.
    """

    def __init__(self, path: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory {path} is full")


def is_no_space(error: OSError) -> bool:
    """Whether there was no block for what was to be written, or no descriptor for its file: nothing is broken."""
    return error.errno in _NO_SPACE or is_out_of_descriptors(error)


class DiskSpace:
    """What is known of the room in one directory."""

    __slots__ = ("_budget", "_clock", "_fs", "_is_reported", "_path", "_refused", "_reported_ms", "is_full")

    def __init__(self, path: str, fs: FileSystem, clock: Clock) -> None:
        self.is_full = False
        self._path = path
        self._fs = fs
        self._clock = clock
        self._budget = 0
        """Bytes that may be appended before the next look."""
        self._refused = 0
        self._reported_ms: int | None = None
        self._is_reported = False

    def take(self, size: int) -> bool:
        """Whether an append of `size` bytes leaves the reserve alone. On the path of every append."""
        if size <= self._budget:
            self._budget -= size
            return True
        return self._take_after_a_look(size)

    def look(self) -> int:
        """Find out how much is free; returns the bytes above the reserve, which may be fewer than none."""
        try:
            available, total = self._fs.space(self._path)
        except OSError:
            available = total = 0
        if not total:  # some network file systems do not say
            available = 2**62
        reserve = min(RESERVE_BYTES_MAX, total // RESERVE_SHARE)
        room = available - reserve
        if room < max(1, reserve // _RESUME_SHARE):
            self._become_full(f"{available} bytes are free, of which {reserve} are kept in reserve")
        else:
            self._become_writable(min(max(room // _PART, 0), LOOK_EVERY_BYTES_MAX))
        return room

    def ran_out(self, error: OSError) -> None:
        """Note that a write has found no space, whatever the file system says about it."""
        self._become_full(str(error), "has no descriptor for a file" if is_out_of_descriptors(error) else "is full")

    def _take_after_a_look(self, size: int) -> bool:
        if self.is_full or self.look() < size:
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
