"""Descriptors that are kept for the broker itself, so that those of clients run out first.

A broker without a descriptor cannot write a checkpoint, sync a file or roll a segment; to it the disk has failed. What
clients can cause, connections and the files their reads open, therefore leaves the last ones of the process alone.

A new descriptor always gets the lowest free number (POSIX). A number thus tells how much is left: whoever gets one
from `connections` on knows that no lower number is free, and gives it back.

Answers to nothing in Kafka, which leaves all of this to ulimit, and goes offline at EMFILE.
"""

from __future__ import annotations

import errno
import resource
import sys
from typing import Final, NamedTuple, Self

RESERVE_MAX: Final = 256
"""Enough for what is held for moments (small files, directories, fsyncs), the metadata tree, links and pipes."""

RESERVE_SHARE: Final = 4
"""Of a small limit, no more than this part is kept."""


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether nothing is wrong with a file or its disk: the process, or the machine, has too many open."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class DescriptorLimits(NamedTuple):
    """The first descriptor that may not be used for something."""

    connections: int = sys.maxsize
    """A client's connection gets none from here on."""
    log_files: int = sys.maxsize
    """Nor does a file that clients read. What logs themselves open makes room by closing others."""
    open_files: int = sys.maxsize
    """How many files logs may hold open: half of all, so that connections find some too."""

    @classmethod
    def of(cls, limit: int) -> Self:
        """With `limit` descriptors in all; negative means any number."""
        if limit < 0:
            return cls()
        reserve = min(RESERVE_MAX, limit // RESERVE_SHARE)
        return cls(connections=limit - reserve, log_files=limit - reserve // 2, open_files=limit // 2)

    @classmethod
    def of_process(cls) -> Self:
        """By the limit (RLIMIT_NOFILE) of this process."""
        return cls.of(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
