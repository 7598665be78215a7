"""The listening sockets that stay open while a broker is replaced by a fresh one: its port does not change.

Each broker gets a duplicate of the kept socket, which it closes when it stops. Clients that connect between two brokers
wait in the kernel's queue.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from odradek.broker.network.sockets.listening_socket import open_listening_socket
from odradek.testing.node.forks import keep_out_of_forks

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from odradek.broker.config.endpoint import EndPoint


class KeptPorts:
    """The sockets of one broker for tests, by listener."""

    __slots__ = ("__weakref__", "_sockets")

    def __init__(self) -> None:
        self._sockets: dict[EndPoint, socket.socket] = {}
        keep_out_of_forks(self)

    def open(self, end_point: EndPoint, *, receive_buffer_bytes: int, backlog: int) -> socket.socket:
        """A listening socket for the end point, with the port of the one before it. Raises: StartupError."""
        kept = self._sockets.get(end_point)
        if kept is None:
            kept = open_listening_socket(end_point, receive_buffer_bytes=receive_buffer_bytes, backlog=backlog)
            self._sockets[end_point] = kept
        duplicate = kept.dup()
        duplicate.setblocking(False)
        return duplicate

    def listening_addresses(self) -> Iterator[tuple[str, int]]:
        """Implements `Listening`."""
        for kept in self._sockets.values():
            with contextlib.suppress(OSError):  # it has just been closed
                yield kept.getsockname()[:2]

    def close(self) -> None:
        for kept in self._sockets.values():
            kept.close()
        self._sockets.clear()
