"""Reads bytes that are in the page cache, and detects when they are not: the event loop must not wait for a disk.

With RWF_NOWAIT a read fails instead of waiting. On a file system without RWF_NOWAIT everything counts as in memory.
"""

from __future__ import annotations

import errno
import os
from typing import Final, Protocol

PROBE_STEP: Final = 256 * 1024
"""Distance between the bytes that are probed."""

READ_BYTES: Final = 4096
"""Reading so many bytes costs less than a second system call."""

_DROPPED: Final = memoryview(bytearray(READ_BYTES))
"""Where probes read to. Nobody looks at it, so several threads may write here at once."""

_NOT_PROBEABLE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class Region(Protocol):
    """A range of bytes of a file."""

    @property
    def size_in_bytes(self) -> int: ...

    @property
    def position(self) -> int: ...

    def fileno(self) -> int: ...


def read_hot(region: Region) -> bytes | None:
    """The bytes of the region; None if not all of them are in memory."""
    buffer = bytearray(region.size_in_bytes)
    fd = region.fileno()
    try:
        count = os.preadv(fd, [buffer], region.position, os.RWF_NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno not in _NOT_PROBEABLE:
            raise
        count = os.preadv(fd, [buffer], region.position)
    return bytes(buffer) if count == region.size_in_bytes else None


def is_in_memory(fd: int, position: int, count: int) -> bool:
    """Whether sendfile of these bytes would not wait for a disk.

    Reads up to `READ_BYTES` of them, and of more one byte every `PROBE_STEP`.
    """
    try:
        if count <= READ_BYTES and os.preadv(fd, [_DROPPED[:count]], position, os.RWF_NOWAIT) == count:
            return True
        byte = [_DROPPED[:1]]
        for offset in (*range(position, position + count, PROBE_STEP), position + count - 1):
            if not os.preadv(fd, byte, offset, os.RWF_NOWAIT):
                return True  # beyond the end of the file: sendfile reports it
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NOT_PROBEABLE:
            raise
    return True
