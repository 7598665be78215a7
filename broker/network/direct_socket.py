"""A second descriptor of a transport's socket, for what no transport offers: `sendfile` from a given offset, on every
event loop, and `send` with MSG_MORE.

The two share one socket, so they must never write at the same time: `ResponseSender` uses this one only while the
transport's buffer is empty, and gives the transport nothing while this one waits. Closing must first stop the waiting
and then close the descriptor: a poller that still knows a closed number would wake up for another file.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class DirectSocket(Protocol):
    """What the sender needs of it. Both calls raise BlockingIOError when the socket takes nothing more now."""

    def send(self, data: bytes | memoryview, *, more: bool) -> int: ...

    def sendfile(self, fd: int, position: int, count: int) -> int:
        """How many bytes went; 0 at the end of the file."""

    def wait_writable(self, callback: Callable[[], None]) -> None:
        """Call back once, when the socket takes more."""

    def close(self) -> None: ...


class DuplicatedSocket:
    """The real one."""

    __slots__ = ("_callback", "_fd", "_is_watched", "_loop", "_socket")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.BaseTransport, fd_limit: int = sys.maxsize
    ) -> None:
        """Raises: OSError EMFILE where the descriptor would have to be `fd_limit` or above."""
        original = transport.get_extra_info("socket")
        self._loop = loop
        self._fd = os.dup(original.fileno())
        if self._fd >= fd_limit:
            os.close(self._fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._socket = socket.socket(original.family, original.type, original.proto, fileno=self._fd)
        self._callback: Callable[[], None] | None = None
        self._is_watched = False

    def send(self, data: bytes | memoryview, *, more: bool) -> int:
        return self._socket.send(data, socket.MSG_DONTWAIT | (socket.MSG_MORE if more else 0))

    def sendfile(self, fd: int, position: int, count: int) -> int:
        return os.sendfile(self._fd, fd, position, count)

    def wait_writable(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_writer(self._fd, self._writable)

    def close(self) -> None:
        self._callback = None
        self._stop_watching()
        self._socket.close()

    def _writable(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()
        if self._callback is None:  # else it waits again: the poller need not hear of it twice
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_writer(self._fd)
