"""Addresses of hosts: of those that configs name, and of sockets.

A name server may take seconds for each name. So names are resolved in the I/O pool, and one at a time: flushes and cold
reads share its threads, and a stop waits for them.

Kafka: InetAddress.getByName.
"""

from __future__ import annotations

import socket
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.ports import IoPool

LOOPBACK = "127.0.0.1"
"""What an empty host name stands for (InetAddress.getByName)."""


class UnknownHostError(OSError):
    """A host name without an address."""


def literal_address(host: str) -> str | None:
    """The address as `getpeername` writes it, if the text is an address; None for a host name."""
    import ipaddress  # a start can do without it

    try:
        address = ipaddress.ip_address(host or LOOPBACK)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def address_of(host: str) -> str:
    """The first address of a host, IPv4 before IPv6. Waits for name servers. Raises: UnknownHostError."""
    try:
        found = socket.getaddrinfo(host or LOOPBACK, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: a label of more than 63 characters
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnknownHostError(f"{host}: {reason}") from error
    first = str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])
    return literal_address(first) or first


def host_and_port(name: object, known_host: str = "") -> tuple[str, int]:
    """Host and port of a socket address; an IPv4 address mapped into IPv6 is shown as IPv4, as Java does.

    `known_host`: the host if the socket has no address any more, because its client has reset the connection.
    """
    if not isinstance(name, tuple):
        return known_host or "unknown", 0
    host, port = cast("tuple[str, int]", name[:2])
    return host.removeprefix("::ffff:"), port


class HostAddresses:
    """Resolves hosts in the order of the calls."""

    __slots__ = ("_io_pool", "_is_busy", "_waiting")

    def __init__(self, io_pool: IoPool) -> None:
        self._io_pool = io_pool
        self._waiting: deque[tuple[str, Callable[[str | OSError], None]]] = deque()
        self._is_busy = False

    def resolve(self, host: str, done: Callable[[str | OSError], None]) -> None:
        """Call `done` with the address of the host, or with the error; at once if nothing has to be looked up."""
        self._waiting.append((host, done))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        while self._waiting and not self._is_busy:
            host, done = self._waiting.popleft()
            address = literal_address(host)
            self._is_busy = True  # `done` may call `resolve`: a list of hosts must not become a stack of calls
            if address is not None:
                try:
                    done(address)
                finally:
                    self._is_busy = False
            else:
                self._io_pool.submit(partial(address_of, host), partial(self._resolved, done))

    def _resolved(self, done: Callable[[str | OSError], None], result: str | OSError) -> None:
        self._is_busy = False
        done(result)
        self._next()
