"""Accepts the connections of one listener.

The acceptor pauses, and connections wait in the kernel's queue, while the broker or the listener is at its limit, for
the throttle time after connections came too fast, and after the process ran out of descriptors or memory.

Kafka: Acceptor.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import socket

    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

ACCEPTS_PER_TURN: Final = 64
"""Connections accepted from one queue before others are served."""

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class AcceptorOwner(Protocol):
    """The part of the server that an acceptor uses. Implemented by `SocketServer`."""

    fd_limit: int

    def may_accept(self, listener_name: str) -> bool:
        """Whether the limits on the number of connections leave room for one of the listener."""

    def record_connection(self, listener_name: str) -> int:
        """Count an accepted socket. Returns the time in ms for which the listener has to wait before `accepted`."""

    def accepted(self, accepted: socket.socket, listener_name: str, host: str) -> None:
        """Take over an accepted socket."""

    def exhausted(self, acceptor: Acceptor, error: OSError) -> None:
        """Call `resume` some time later."""


class Acceptor:
    """Owns the listening socket, and an accepted socket whose listener is throttled."""

    __slots__ = ("_is_accepting", "_is_limited", "_listener_name", "_listening", "_server", "_throttle", "_timer")

    def __init__(self, server: AcceptorOwner, timer: SystemTimer, listening: socket.socket, listener_name: str) -> None:
        self._server = server
        self._timer = timer
        self._listening = listening
        self._listener_name = listener_name
        self._is_accepting = False
        self._is_limited = False
        """The acceptor waits until a connection closes or a limit is raised."""
        self._throttle: tuple[socket.socket, str, TimerTask] | None = None
        """The accepted socket that waits for the end of the throttle time or, after that, for its place; its host."""

    def resume(self) -> None:
        if not self._is_accepting and self._listening.fileno() >= 0:
            self._is_accepting = True
            asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept)

    def resume_if_limited(self) -> None:
        if self._is_limited and self._server.may_accept(self._listener_name):
            self._is_limited = False
            if self._throttle is None:
                self.resume()
            else:
                self._end_throttle()

    def close(self) -> None:
        self._pause()
        self._listening.close()
        if self._throttle is not None:
            accepted, _, task = self._throttle
            task.cancel()
            accepted.close()
            self._throttle = None

    def _pause(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            asyncio.get_running_loop().remove_reader(self._listening.fileno())

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._server.may_accept(self._listener_name):
                self._is_limited = True
                self._pause()
                return
            try:
                accepted, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause()
                    self._server.exhausted(self, error)
                    return
                continue  # the client gave up while it waited
            if accepted.fileno() >= self._server.fd_limit:
                accepted.close()
                self._pause()
                self._server.exhausted(self, OSError(errno.EMFILE, "the last descriptors are kept for the broker"))
                return
            accepted.setblocking(False)
            host = str(address[0]).removeprefix("::ffff:")
            throttle_ms = self._server.record_connection(self._listener_name)
            if throttle_ms:
                self._pause()
                self._throttle = (accepted, host, self._timer.schedule(throttle_ms, self._end_throttle))
                return
            self._server.accepted(accepted, self._listener_name, host)

    def _end_throttle(self) -> None:
        """The throttle time is over: serve the connection, as soon as there is a place for it, and those after it."""
        assert self._throttle is not None
        if not self._server.may_accept(self._listener_name):
            self._is_limited = True
            return
        accepted, host, _ = self._throttle
        self._throttle = None
        self._server.accepted(accepted, self._listener_name, host)
        self.resume()
