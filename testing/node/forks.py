"""What a process that was forked from the test process must not keep: the sockets of brokers in threads.

A fork has only the thread that has forked, so nobody serves there. It inherits the sockets, though. If it kept them,
clients would wait in the queue of a listening socket from which nobody accepts, no other broker could have the port,
and no client would learn that its connection was closed.
"""

from __future__ import annotations

import os
import socket
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

RUNS_ELSEWHERE: Final = "The broker runs in the process that has forked this one"
"""Why a forked process cannot ask it."""

_WILDCARDS: Final = ("0.0.0.0", "::")


def nothing_to_stop() -> Future[None]:
    """What `Node.stop` gives a forked process."""
    stopped: Future[None] = Future()
    stopped.set_result(None)
    return stopped


class Listening(Protocol):
    """What listens in a thread of the test process."""

    def listening_addresses(self) -> Iterable[tuple[str, int]]:
        """Address and port of each listening socket."""


_LISTENING: Final[WeakSet[Listening]] = WeakSet()


def keep_out_of_forks(listening: Listening) -> None:
    """Its listening sockets, and the connections that were accepted there, are closed in every forked process."""
    _LISTENING.add(listening)


def release(descriptors: Iterable[int]) -> None:
    """Close descriptors that belong to objects, which may close them once more.

    So they refer to the null device from now on: a file that is opened later does not get the number. Raises: OSError.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        os.dup2(null, each, inheritable=False)
    os.close(null)


def _close_in_fork() -> None:
    addresses = {address for each in _LISTENING for address in each.listening_addresses()}
    _LISTENING.clear()  # a fork of this fork inherits none of them
    if addresses:
        release(_sockets_at(addresses))


def _sockets_at(addresses: Collection[tuple[str, int]]) -> list[int]:
    """The descriptors of the sockets that listen at one of these addresses or were accepted there."""
    timeout_s = socket.getdefaulttimeout()
    socket.setdefaulttimeout(None)  # with another one `_is_at` would make a socket non-blocking, in all processes
    try:
        return [each for each in map(int, os.listdir("/dev/fd")) if _is_at(each, addresses)]
    finally:
        socket.setdefaulttimeout(timeout_s)


def _is_at(descriptor: int, addresses: Collection[tuple[str, int]]) -> bool:
    try:
        found = socket.socket(fileno=descriptor)
    except OSError:  # no socket
        return False
    try:
        if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM:
            return False
        host, port = found.getsockname()[:2]
        return any((each, port) in addresses for each in (host, *_WILDCARDS))
    finally:
        found.detach()


os.register_at_fork(after_in_child=_close_in_fork)
