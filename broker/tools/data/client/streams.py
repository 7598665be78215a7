"""Standard input and output without keeping the event loop waiting.

Pipes, sockets and terminals are read and written when they are ready, so that heartbeats and requests go on while the
other program of a pipe is slow. Files are always ready. A pipe that is ready takes PIPE_BUF bytes without waiting;
larger pieces might not fit.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Callable
from typing import Final

READ_BYTES: Final = 64 * 1024
FILE_WRITE_BYTES: Final = 1024 * 1024


class InputStream:
    """Reads a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._is_file = _is_always_ready(descriptor)

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        while True:
            if self._is_file:
                await asyncio.sleep(0)
            else:
                await _ready(self._descriptor, self._loop.add_reader, self._loop.remove_reader)
            try:
                return os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                continue  # another process has taken the bytes


class OutputStream:
    """Writes to a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_file = _is_always_ready(descriptor)

    async def write(self, data: bytes) -> None:
        """Write all bytes. Raises: BrokenPipeError when nobody reads any more; OSError."""
        view = memoryview(data)
        while view:
            if self._is_file:
                await asyncio.sleep(0)
            elif not self._poll.poll(0):
                await _ready(self._descriptor, self._loop.add_writer, self._loop.remove_writer)
            piece = view[: FILE_WRITE_BYTES if self._is_file else select.PIPE_BUF]
            try:
                view = view[os.write(self._descriptor, piece) :]
            except BlockingIOError:
                continue  # another process has filled the pipe


def _is_always_ready(descriptor: int) -> bool:
    """Whether it is a file or /dev/null, which epoll does not take."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor))


async def _ready(
    descriptor: int, add: Callable[[int, Callable[[], None]], None], remove: Callable[[int], object]
) -> None:
    """Wait until a descriptor is ready."""
    ready = asyncio.get_running_loop().create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, note)
    try:
        await ready
    finally:
        remove(descriptor)
