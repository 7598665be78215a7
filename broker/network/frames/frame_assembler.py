"""Assembles frames from received bytes.

A frame that lies in one received chunk is returned as a view of the chunk, without a copy. Any other frame is assembled
in a buffer of its own. The buffer grows as bytes arrive, not by the announced size: a frame that claims 100 MB costs a
few times the bytes received so far. Every byte is copied a bounded number of times, even if bytes arrive one by one.

With a memory pool, such a buffer is made when the pool has memory for the whole frame; until then `next_frame` returns
None, and nothing more should be received.

Ownership: a returned frame is a view of an immutable chunk, or of a buffer that this class no longer uses. Nothing
overwrites it while a view of it exists (`frame_buffers.py`).

Kafka: NetworkReceive.
"""

from __future__ import annotations

from collections import deque
from mmap import mmap
from struct import Struct
from typing import TYPE_CHECKING, Final

from odradek.broker.network.frames.frame_buffers import GROWTH, FrameBuffers, grow
from odradek.protocol.framing import SIZE_BYTES, FrameSizeError, read_frame_size

if TYPE_CHECKING:
    from odradek.broker.network.frames.memory_pool import ConnectionMemory, Memory

__all__ = ["FrameAssembler", "FrameSizeError"]

FIRST_CAPACITY: Final = 4096
"""Initial size of a small buffer, or the bytes of its frame received so far if those are more."""

DIRECT_RECEIVE_BYTES: Final = 64 * 1024
"""A large frame is received directly into its buffer while at least this much of it is missing."""

LARGE_FRAME_BYTES: Final = 128 * 1024
"""Frames of at least this size are assembled in a buffer of `FrameBuffers`."""

_SIZE = Struct(">i")


class FrameAssembler:
    """The receiving half of one connection."""

    __slots__ = (
        "_buffers",
        "_chunk",
        "_filled",
        "_memory",
        "_next_chunks",
        "_partial",
        "_partial_memory",
        "_position",
        "_size",
        "_split_size",
        "buffered",
        "frame_memory",
        "max_size",
        "takes_memory",
    )

    def __init__(
        self,
        max_size: int,
        buffers: FrameBuffers | None = None,
        memory: ConnectionMemory | None = None,
    ) -> None:
        self._buffers = buffers or FrameBuffers()
        self.max_size = max_size
        self.buffered = 0
        """Bytes received and not yet returned as part of a frame."""
        self._chunk = b""
        self._position = 0
        self._next_chunks: deque[bytes] = deque()
        """The chunks after `_chunk`."""
        self._split_size = b""
        """The first bytes of a size prefix that is split over chunks."""
        self._partial: bytearray | mmap | None = None
        self._filled = 0
        self._size = 0
        self._memory = memory
        self.takes_memory = True
        """Whether frames take memory of the pool, if there is one."""
        self._partial_memory: Memory | None = None
        self.frame_memory: Memory | None = None
        """The memory of the last returned frame. The connection moves it to the context of the request."""

    def feed(self, data: bytes) -> None:
        """Add a received chunk, which must not change any more."""
        self.buffered += len(data)
        if self._position == len(self._chunk):
            self._chunk = data
            self._position = 0
        else:
            self._next_chunks.append(data)

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size prefix; None if it is incomplete. Raises: FrameSizeError."""
        while self.buffered:
            chunk = self._chunk
            position = self._position
            left = len(chunk) - position
            if self._partial is None and not self._split_size and left >= SIZE_BYTES:  # fast path: no copy
                size = _SIZE.unpack_from(chunk, position)[0]
                start = position + SIZE_BYTES
                end = start + size
                if 0 <= size <= self.max_size and end <= len(chunk):
                    self.buffered -= SIZE_BYTES + size
                    if end != len(chunk):
                        self._position = end
                    elif self._next_chunks:
                        self._advance_chunk()
                    else:
                        self._chunk = b""
                        self._position = 0
                    return memoryview(chunk)[start:end]
            if (left or self.waits_for_memory) and self._consume(chunk, position, left):
                return self._finish_frame()
            if self.waits_for_memory:
                return None
            if self._position == len(self._chunk) and not self._advance_chunk():
                return None
        return None

    def leading_bytes(self) -> bytes:
        """The bytes of the refused size: they may show which other protocol the client speaks."""
        return self._split_size

    @property
    def waits_for_memory(self) -> bool:
        """Whether the size of the next frame is known, and its memory is not there."""
        return len(self._split_size) == SIZE_BYTES

    def close(self) -> None:
        """Release the memory of frames that are not handled."""
        for memory in (self._partial_memory, self.frame_memory):
            if memory is not None:
                memory.release()
        if self._memory is not None:
            self._memory.close()

    def discard(self) -> None:
        """Drop all that was received. Nothing more is assembled."""
        self.close()
        self.max_size = self.buffered = self._position = 0
        self._chunk = self._split_size = b""
        self._next_chunks.clear()
        self._partial = self._partial_memory = self.frame_memory = self._memory = None

    @property
    def wants_direct_receive(self) -> bool:
        """Whether the beginning of a large frame is all that was received."""
        return (
            self._partial is not None
            and self._size - self._filled >= DIRECT_RECEIVE_BYTES
            and self._position == len(self._chunk)
        )

    def free_space(self) -> memoryview:
        """Where the next bytes of the large frame go. Valid until `received`."""
        assert self._partial is not None
        if self._filled == len(self._partial):
            self._grow(self._partial)
        return memoryview(self._partial)[self._filled : self._size]

    def received(self, count: int) -> None:
        """`count` bytes were written to `free_space`."""
        self.buffered += count
        self._filled += count

    def _consume(self, chunk: bytes, position: int, left: int) -> bool:
        """Move bytes of the chunk into the size or the buffer of the current frame; True if it is complete."""
        partial = self._partial
        if partial is None:
            taken = min(SIZE_BYTES - len(self._split_size), left)
            self._split_size += chunk[position : position + taken]
            self._position = position + taken
            size = read_frame_size(self._split_size, self.max_size)
            if size is None:
                return False
            if self._memory is not None and self.takes_memory and size:
                self._partial_memory = self._memory.take(size)
                if self._partial_memory is None:
                    return False
            self._split_size = b""
            self._size = size
            self._filled = 0
            if size >= LARGE_FRAME_BYTES:
                self._partial = self._buffers.take(size)
            else:
                self._partial = bytearray(min(size, max(FIRST_CAPACITY, left - taken)))
            return size == 0
        taken = min(self._size - self._filled, left)
        while self._filled + taken > len(partial):
            self._grow(partial)
        partial[self._filled : self._filled + taken] = memoryview(chunk)[position : position + taken]
        self._filled += taken
        self._position = position + taken
        return self._filled == self._size

    def _finish_frame(self) -> memoryview:
        frame, self._partial = self._partial, None
        assert frame is not None
        self.frame_memory, self._partial_memory = self._partial_memory, None
        self.buffered -= SIZE_BYTES + self._size
        if self._position == len(self._chunk):
            self._advance_chunk()
        view = memoryview(frame)[: self._size]
        if not isinstance(frame, bytearray):
            self._buffers.keep(frame)
        return view

    def finish_direct_receive(self) -> memoryview | None:
        """The large frame if `received` has completed it."""
        return self._finish_frame() if self._partial is not None and self._filled == self._size else None

    def _grow(self, partial: bytearray | mmap) -> None:
        if isinstance(partial, bytearray):
            partial.extend(bytes(min(self._size, GROWTH * len(partial)) - len(partial)))
        else:
            grow(partial, self._size)

    def _advance_chunk(self) -> bool:
        """Go on to the next chunk. Returns False if there is none; an idle connection holds no chunk."""
        self._position = 0
        if self._next_chunks:
            self._chunk = self._next_chunks.popleft()
            return True
        self._chunk = b""
        return False
