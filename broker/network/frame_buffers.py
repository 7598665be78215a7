"""Buffers for large frames: mapped memory, used again once nobody refers to what was in it.

Mapped, because the kernel gives a page only when something is written to it, and takes all of them back when the
mapping goes: a frame costs what has come of it, it grows without being copied, and a burst of large frames leaves
nothing behind in the allocator.

Used again, because fresh pages are dear: the kernel clears each of them. A buffer that held a frame is kept here and
handed out for the next one *if no view of it exists any more*. That is not a matter of bookkeeping: a mapping that is
exported cannot be resized, so trying to tells whether anybody (a handler, a response, a thread that writes) still
holds a view. A frame is thus never overwritten while somebody can see it, however long that is.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Final

MAX_KEPT_BUFFER_BYTES: Final = 4 << 20
"""Larger ones go back to the system."""

MAX_KEPT_BYTES: Final = 16 << 20

FIRST_CAPACITY: Final = 1 << 20
GROWTH: Final = 4
"""A full buffer becomes this many times as large. What is not yet written to costs address space only."""


class FrameBuffers:
    """Shared by the connections of a server."""

    __slots__ = ("_kept", "_kept_bytes")

    def __init__(self) -> None:
        self._kept: deque[mmap.mmap] = deque()
        """Those that have been used, the last used at the right; some still referred to."""
        self._kept_bytes = 0

    def take(self, size: int) -> mmap.mmap:
        """A buffer that nobody refers to, for a frame of `size` bytes; `grow` makes it large enough."""
        for index in range(len(self._kept) - 1, -1, -1):
            buffer = self._kept[index]
            if size <= len(buffer) <= GROWTH * size and not is_referred_to(buffer):
                del self._kept[index]
                self._kept_bytes -= len(buffer)
                return buffer
        return mmap.mmap(-1, min(size, FIRST_CAPACITY), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def keep(self, buffer: mmap.mmap) -> None:
        """Remember a buffer whose frame has been handed out. The oldest ones make room."""
        size = len(buffer)
        if size > MAX_KEPT_BUFFER_BYTES:
            return
        self._kept.append(buffer)
        self._kept_bytes += size
        while self._kept_bytes > MAX_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft())


def grow(buffer: mmap.mmap, size: int) -> None:
    """Make room for more of a frame of `size` bytes."""
    buffer.resize(min(size, GROWTH * len(buffer)))


def is_referred_to(buffer: mmap.mmap) -> bool:
    """Whether a view of the buffer exists."""
    try:
        buffer.resize(len(buffer))
    except BufferError:
        return True
    return False
