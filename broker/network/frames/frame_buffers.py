"""Buffers for large frames: mapped memory, reused when no view of it exists any more.

Mapped, because the kernel provides a page at the first write to it, and takes all pages back when the mapping is
closed. A frame costs only the bytes received so far, it grows without a copy, and a burst of large frames leaves no
memory behind in the allocator.

Reused, because the kernel clears every fresh page, which takes time. A buffer that held a frame is kept here and
returned for the next one *if no view of it exists any more*. That needs no bookkeeping: a mapping with a view cannot be
resized, so an attempt shows whether a handler, a response or a writing thread still holds a view. A frame is never
overwritten while a view of it exists.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Final

MAX_KEPT_BUFFER_BYTES: Final = 4 << 20
"""Larger buffers are not kept."""

MAX_KEPT_BYTES: Final = 16 << 20

SHARED_BYTES: Final = 240 * 1024
"""Nearly what both event loops read from a socket at once. A copy of all of it comes from the heap (`allocator.py`)."""

FIRST_CAPACITY: Final = 1 << 20
GROWTH: Final = 4
"""Growth factor of a full buffer. Pages that were never written cost address space only."""


class FrameBuffers:
    """Shared by the connections of a server."""

    __slots__ = ("_kept", "_kept_bytes", "_shared")

    def __init__(self) -> None:
        self._kept: deque[mmap.mmap] = deque()
        """Used buffers, the last used at the right; views of some still exist."""
        self._kept_bytes = 0
        self._shared: memoryview | None = None

    @property
    def shared(self) -> memoryview:
        """`SHARED_BYTES`, for what a read brings until it is copied (`chunk_receiver.py`); made at the first use."""
        if self._shared is None:
            self._shared = memoryview(bytearray(SHARED_BYTES))
        return self._shared

    def take(self, size: int) -> mmap.mmap:
        """A buffer without views for a frame of `size` bytes; `grow` makes it large enough."""
        for index in range(len(self._kept) - 1, -1, -1):
            buffer = self._kept[index]
            if size <= len(buffer) <= GROWTH * size and not has_views(buffer):
                del self._kept[index]
                self._kept_bytes -= len(buffer)
                return buffer
        return mmap.mmap(-1, min(size, FIRST_CAPACITY), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def keep(self, buffer: mmap.mmap) -> None:
        """Keep a buffer whose frame was returned, for reuse. Drops the oldest buffers beyond MAX_KEPT_BYTES."""
        size = len(buffer)
        if size > MAX_KEPT_BUFFER_BYTES:
            return
        self._kept.append(buffer)
        self._kept_bytes += size
        while self._kept_bytes > MAX_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft())


def grow(buffer: mmap.mmap, size: int) -> None:
    """Enlarge the buffer of a frame of `size` bytes."""
    buffer.resize(min(size, GROWTH * len(buffer)))


def has_views(buffer: mmap.mmap) -> bool:
    """Whether a view of the buffer exists."""
    try:
        buffer.resize(len(buffer))
    except BufferError:
        return True
    return False
