"""Frames: the size, a big-endian int32 that does not count itself, and behind it a request or a response.

Kafka: the sizes of NetworkReceive and NetworkSend.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout

from odradek.protocol.codec.codec import Part, TooLargeError, size_of
from odradek.protocol.codec.decode_error import DecodeError

_SIZE = Layout(">i")
SIZE_BYTES = _SIZE.size
MAX_FRAME_BYTES = 0x7FFFFFFF


class FrameSizeError(DecodeError):
    """The size of a frame is negative or above the limit. The connection has to be closed."""


def read_frame_size(buffer: memoryview | bytes | bytearray, max_size: int, position: int = 0) -> int | None:
    """The size of the frame that begins at `position`, or None while fewer than four bytes are there."""
    if len(buffer) - position < SIZE_BYTES:
        return None
    size: int = _SIZE.unpack_from(buffer, position)[0]
    if size < 0:
        raise FrameSizeError(f"Invalid receive (size = {size})")
    if size > max_size:
        raise FrameSizeError(f"Invalid receive (size = {size} larger than {max_size})")
    return size


def frame_prefix(size: int) -> bytes:
    """The four bytes before a frame of `size` bytes."""
    if not 0 <= size <= MAX_FRAME_BYTES:
        raise TooLargeError(f"a frame of {size} bytes cannot be sent")
    return _SIZE.pack(size)


def frame(parts: Sequence[Part]) -> list[Part]:
    """The parts of a response with their size in front, joined to the first part where that is bytes."""
    prefix = frame_prefix(size_of(parts))
    if parts and isinstance(parts[0], bytes):
        return [prefix + parts[0], *parts[1:]]
    return [prefix, *parts]
