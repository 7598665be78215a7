"""Ports that stay those of a cluster's brokers while these do not run.

Without that, a port is free between the stop and the next start of a broker, and the system may give it to another
program. A socket that is bound with SO_REUSEADDR and does not listen takes a port out of the system's choice; a broker
binds and listens beside it, and clients are refused while no broker does. That is so on Linux; elsewhere a port is
chosen at the first start and may be lost while the broker is down.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

ANY_PORT: Final = 0
_LOOPBACK: Final = "127.0.0.1"


class ReservedPorts:
    """The ports of one cluster, until `close`."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self) -> int:
        """A port of 127.0.0.1; ANY_PORT where none can be reserved. Raises: OSError if there is no free port."""
        if sys.platform != "linux":
            return ANY_PORT
        bound = socket.socket()
        self._sockets.append(bound)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((_LOOPBACK, ANY_PORT))
        port: int = bound.getsockname()[1]
        return port

    def in_listeners(self, listeners: str) -> str:
        """`NAME://127.0.0.1:0,...` with a reserved port in place of each 0. Other listeners stay as they are."""
        return ",".join(map(self._in_listener, listeners.split(",")))

    def _in_listener(self, listener: str) -> str:
        start, _, port = listener.strip().rpartition(":")
        return f"{start}:{self.reserve()}" if start.endswith(f"//{_LOOPBACK}") and port == str(ANY_PORT) else listener

    def close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()
