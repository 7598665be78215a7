"""Standard input and output without keeping the loop waiting.

Pipes, sockets and terminals are read and written when they are ready, so that heartbeats and requests go on while the
other program of a pipe is slow. Files are always ready. A pipe that is ready takes PIPE_BUF bytes without waiting;
larger pieces might not fit.
"""

from __future__ import annotations

import os
import select
import stat
from typing import Final

from odradek.broker.tools.command.socket_loop import READ, WRITE, turn, wait_for

READ_BYTES: Final = 64 * 1024
FILE_WRITE_BYTES: Final = 1024 * 1024


class InputStream:
    """Reads a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_file = _is_always_ready(descriptor)

    async def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        while True:
            await (turn() if self._is_file else wait_for(self._descriptor, READ, None))
            try:
                return os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                continue  # another process has taken the bytes


class OutputStream:
    """Writes to a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_file = _is_always_ready(descriptor)

    async def write(self, data: bytes) -> None:
        """Write all bytes. Raises: BrokenPipeError when nobody reads any more; OSError."""
        view = memoryview(data)
        while view:
            if self._is_file:
                await turn()
            elif not self._poll.poll(0):
                await wait_for(self._descriptor, WRITE, None)
            piece = view[: FILE_WRITE_BYTES if self._is_file else select.PIPE_BUF]
            try:
                view = view[os.write(self._descriptor, piece) :]
            except BlockingIOError:
                continue  # another process has filled the pipe


def _is_always_ready(descriptor: int) -> bool:
    """Whether it is a file or /dev/null, which epoll does not take."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor))
