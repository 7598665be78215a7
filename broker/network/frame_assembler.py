"""Bytes in, frames out.

A frame that lies wholly in a received chunk is a view of it, without a copy. One that does not is assembled in a
buffer of its own, which grows as bytes arrive and never because the sender announced them: a frame that claims 100 MB
costs a few times what has come of it so far. Every byte is copied a bounded number of times, however it trickles in.

Ownership: a returned frame is a view of an immutable chunk or of a buffer that this class lets go of in the same
moment. It lives as long as somebody refers to it, and nothing writes to it before (`frame_buffers.py`).

Kafka: NetworkReceive.
"""

from __future__ import annotations

from collections import deque
from mmap import mmap
from struct import Struct
from typing import Final

from odradek.broker.network.frame_buffers import GROWTH, FrameBuffers, grow
from odradek.protocol.framing import SIZE_BYTES, FrameSizeError, read_frame_size

__all__ = ["FrameAssembler", "FrameSizeError"]

FIRST_CAPACITY: Final = 4096
"""A small buffer begins with this much, or with what has already come of its frame."""

DIRECT_RECEIVE_BYTES: Final = 64 * 1024
"""When more than this is missing from a frame, it is worth receiving straight into its buffer."""

LARGE_FRAME_BYTES: Final = 128 * 1024
"""Frames from this size on come into a buffer of `FrameBuffers`."""

_SIZE = Struct(">i")


class FrameAssembler:
    """The receiving half of one connection."""

    __slots__ = (
        "_buffers",
        "_chunk",
        "_chunks",
        "_filled",
        "_head",
        "_partial",
        "_position",
        "_size",
        "buffered",
        "max_size",
    )

    def __init__(self, max_size: int, buffers: FrameBuffers | None = None) -> None:
        self._buffers = buffers or FrameBuffers()
        self.max_size = max_size
        self.buffered = 0
        """Bytes received and not yet returned as part of a frame."""
        self._chunk = b""
        self._position = 0
        self._chunks: deque[bytes] = deque()
        """Chunks behind `_chunk`."""
        self._head = b""
        """The first bytes of a size that is split over chunks."""
        self._partial: bytearray | mmap | None = None
        self._filled = 0
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take a chunk, which must not change any more."""
        self.buffered += len(data)
        if self._position == len(self._chunk):
            self._chunk = data
            self._position = 0
        else:
            self._chunks.append(data)

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its size; None if it is not all there. Raises FrameSizeError."""
        while True:
            chunk = self._chunk
            position = self._position
            left = len(chunk) - position
            if self._partial is None and not self._head and left >= SIZE_BYTES:
                size = _SIZE.unpack_from(chunk, position)[0]
                start = position + SIZE_BYTES
                end = start + size
                if 0 <= size <= self.max_size and end <= len(chunk):
                    self.buffered -= SIZE_BYTES + size
                    if end == len(chunk):
                        self._drop_chunk()
                    else:
                        self._position = end
                    return memoryview(chunk)[start:end]
            if left and self._take(chunk, position, left):
                return self._finish()
            if self._position == len(self._chunk) and not self._drop_chunk():
                return None

    def leading_bytes(self) -> bytes:
        """The size that was refused, as it came: it tells what speaks another protocol."""
        return self._head

    @property
    def wants_direct_receive(self) -> bool:
        """Whether all that is known is the beginning of a large frame."""
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

    def _take(self, chunk: bytes, position: int, left: int) -> bool:
        """Move bytes of the chunk into the size or the buffer of the current frame; True if it is complete."""
        partial = self._partial
        if partial is None:
            taken = min(SIZE_BYTES - len(self._head), left)
            self._head += chunk[position : position + taken]
            self._position = position + taken
            size = read_frame_size(self._head, self.max_size)
            if size is None:
                return False
            self._head = b""
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

    def _finish(self) -> memoryview:
        frame, self._partial = self._partial, None
        assert frame is not None
        self.buffered -= SIZE_BYTES + self._size
        if self._position == len(self._chunk):
            self._drop_chunk()
        view = memoryview(frame)[: self._size]
        if not isinstance(frame, bytearray):
            self._buffers.keep(frame)
        return view

    def finish_direct_receive(self) -> memoryview | None:
        """The large frame if `received` has completed it."""
        return self._finish() if self._partial is not None and self._filled == self._size else None

    def _grow(self, partial: bytearray | mmap) -> None:
        if isinstance(partial, bytearray):
            partial.extend(bytes(min(self._size, GROWTH * len(partial)) - len(partial)))
        else:
            grow(partial, self._size)

    def _drop_chunk(self) -> bool:
        """Go on to the next chunk, if there is one; an idle connection holds no buffer."""
        self._position = 0
        if self._chunks:
            self._chunk = self._chunks.popleft()
            return True
        self._chunk = b""
        return False
