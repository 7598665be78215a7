"""Closes the sockets that kafka-python forgets. To import this module is enough.

A client of kafka-python 3.0 that is closed while it connects or sends cancels the task that has the socket, and leaves
it open. The ResourceWarning comes with a later garbage collection, and fails whichever test runs then.
"""

from __future__ import annotations

import socket
import weakref
from typing import Final

from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector

_SOCKETS: Final[weakref.WeakKeyDictionary[NetworkSelector, list[socket.socket]]] = weakref.WeakKeyDictionary()
"""Of each client, which has an event loop of its own."""

_connect, _close = KafkaNetSocket.sock_connect, NetworkSelector.close


async def _connect_noted(
    self: KafkaNetSocket, net: NetworkSelector, sock: socket.socket, address: object, timeout_at: float | None = None
) -> socket.socket:
    _SOCKETS.setdefault(net, []).append(sock)
    connected: socket.socket = await _connect(self, net, sock, address, timeout_at=timeout_at)
    return connected


def _close_with_sockets(self: NetworkSelector) -> None:
    _close(self)
    for sock in _SOCKETS.pop(self, []):
        sock.close()


KafkaNetSocket.sock_connect = _connect_noted
NetworkSelector.close = _close_with_sockets
