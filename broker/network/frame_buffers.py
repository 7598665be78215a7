"""Buffers for large frames, used again once nobody refers to what was in them.

Fresh memory is dear: the kernel clears every page of it. A buffer that held a frame is kept here, and handed out for
the next one *if no view of it exists any more*. That is not a matter of bookkeeping: a bytearray that is exported
cannot be resized, so trying to tells whether anybody (a handler, a response, a thread that writes) still holds a
view. A frame is thus never overwritten while somebody can see it, however long that is.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_BUFFER_BYTES: Final = 4 << 20
"""Larger ones are given back to the system."""

MAX_POOLED_BYTES: Final = 16 << 20


class FrameBuffers:
    """Shared by the connections of a server."""

    __slots__ = ("_buffers", "_bytes")

    def __init__(self) -> None:
        self._buffers: deque[bytearray] = deque()
        """Those that have been used, the last used at the right; some still referred to."""
        self._bytes = 0

    def take(self, size: int) -> bytearray | None:
        """A buffer of at least `size` bytes that nobody refers to, if there is one."""
        for index in range(len(self._buffers) - 1, -1, -1):
            buffer = self._buffers[index]
            if size <= len(buffer) <= 4 * size and not is_referred_to(buffer):
                del self._buffers[index]
                self._bytes -= len(buffer)
                return buffer
        return None

    def keep(self, buffer: bytearray) -> None:
        """Remember a buffer whose frame has been handed out. The oldest ones make room."""
        size = len(buffer)
        if size > MAX_BUFFER_BYTES:
            return
        self._buffers.append(buffer)
        self._bytes += size
        while self._bytes > MAX_POOLED_BYTES:
            self._bytes -= len(self._buffers.popleft())


def is_referred_to(buffer: bytearray) -> bool:
    """Whether a view of the buffer exists. Leaves it as it was; neither step moves the memory."""
    try:
        last = buffer.pop()
    except BufferError:
        return True
    buffer.append(last)
    return False
