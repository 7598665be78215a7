"""A reserve of file descriptors for the broker itself, so that client work runs out of descriptors first.

Without a descriptor, a broker cannot write a checkpoint, sync a file or roll a segment. Connections, and the files that
client reads open, therefore leave the last descriptors of the process free.

A new descriptor always gets the lowest free number (POSIX). A number at or above a limit therefore means that no lower
number is free: the caller closes the descriptor again.

Kafka has no such reserve: it relies on ulimit, and a log directory goes offline at EMFILE.
"""

from __future__ import annotations

import errno
import resource
import sys
from typing import Final, NamedTuple, Self

RESERVE_MAX: Final = 256
"""Enough for short-lived descriptors (small files, directories, fsyncs), the metadata tree, links and pipes."""

RESERVE_SHARE: Final = 4
"""The reserve is at most this fraction (1/4) of the limit."""


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether the process or the machine has too many open files. The file and its disk are not at fault."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class DescriptorLimits(NamedTuple):
    """The first descriptor numbers that client work must not use, and the number of files that logs hold open."""

    connections: int = sys.maxsize
    """Client connections use only lower numbers."""
    log_files: int = sys.maxsize
    """Files that clients read use only lower numbers. Files that logs open for themselves close others instead."""
    open_files: int = sys.maxsize
    """The number of files that logs may hold open: half of all, which leaves the rest to connections."""

    @classmethod
    def of(cls, limit: int) -> Self:
        """The limits for a process with `limit` descriptors; negative means unlimited."""
        if limit < 0:
            return cls()
        reserve = min(RESERVE_MAX, limit // RESERVE_SHARE)
        return cls(connections=limit - reserve, log_files=limit - reserve // 2, open_files=limit // 2)

    @classmethod
    def of_process(cls) -> Self:
        """The limits for RLIMIT_NOFILE of this process."""
        return cls.of(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
