"""Accepted sockets of addresses that make connections faster than they may: closed after a delay, and never read.

Their number is limited, so that an address cannot take up the descriptors of the broker: beyond it, the socket that
waited for longest is closed.

Kafka: Acceptor.DelayedCloseSocket, Acceptor.closeThrottledConnections.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

MAX_THROTTLED_SOCKETS: Final = 1000

ROUND_MS: Final = 500
"""A socket is closed at the end of a round, as by Apache Kafka's acceptor, which looks for them every 500 ms: a client
that comes back as soon as it is closed would else make a connection that is refused for each one that is served."""

SHARE_OF_DESCRIPTORS: Final = 10
"""At most one in this many descriptors of connections is one of a throttled socket."""


class ThrottledSockets:
    """Owns the sockets from `add` until they are closed."""

    __slots__ = ("_limit", "_timer", "_waiting")

    def __init__(self, timer: SystemTimer, fd_limit: int) -> None:
        """`fd_limit`: the descriptors that connections may have."""
        self._timer = timer
        self._limit = max(1, min(MAX_THROTTLED_SOCKETS, fd_limit // SHARE_OF_DESCRIPTORS))
        self._waiting: dict[socket.socket, TimerTask] = {}

    def add(self, accepted: socket.socket, throttle_ms: int) -> None:
        """Close the socket after `throttle_ms`, rounded up to whole rounds."""
        if len(self._waiting) >= self._limit:
            self._close(next(iter(self._waiting)))
        delay_ms = math.ceil(throttle_ms / ROUND_MS) * ROUND_MS
        self._waiting[accepted] = self._timer.schedule(delay_ms, lambda: self._close(accepted))

    def close(self) -> None:
        """Close all of them now."""
        for accepted in list(self._waiting):
            self._close(accepted)

    def _close(self, accepted: socket.socket) -> None:
        self._waiting.pop(accepted).cancel()
        accepted.close()
