"""A second descriptor of a transport's socket, for calls that transports lack: `sendfile` from a given offset on every
event loop, and `send` with MSG_MORE.

Both descriptors share one socket, so they must never write at the same time: `ResponseSender` uses this one only while
the transport's buffer is empty, and writes nothing to the transport while this one waits. `close` first removes the
watcher and then closes the descriptor: a poller that still watched the number would report the events of another file.

Kafka: PlaintextTransportLayer.transferFrom.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_NO_LINGER: Final = struct.pack("ii", 1, 0)


class DirectSocket(Protocol):
    """The calls of `ResponseSender`. `send` and `sendfile` raise BlockingIOError while the socket's buffer is full."""

    def send(self, data: bytes | bytearray | memoryview, *, more: bool) -> int: ...

    def sendfile(self, fd: int, position: int, count: int) -> int:
        """Returns the number of bytes sent; 0 at the end of the file."""

    def wait_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when the socket is writable."""

    def close(self) -> None: ...


class DuplicatedSocket:
    """Implements `DirectSocket` with a duplicated descriptor."""

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

    def send(self, data: bytes | bytearray | memoryview, *, more: bool) -> int:
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
        if self._callback is None:  # else the callback waits again, and the watcher stays
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_writer(self._fd)


def end_with_reset(transport: asyncio.BaseTransport) -> None:
    """Have the peer get a RST when the transport is closed, and drop what is unsent.

    The option is set on a second descriptor of the socket, because uvloop gives no access to those of its own.
    """
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
