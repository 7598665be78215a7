"""Opens the sockets on which a broker listens.

Kafka: Acceptor.openServerSocket.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Final, Protocol, cast

from odradek.broker.config.endpoint import EndPoint
from odradek.broker.machine.startup_error import StartupError

USE_OS_DEFAULT: Final = -1
PORT_MAX: Final = 65535


class OpenListening(Protocol):
    """How a listening socket is opened."""

    def __call__(self, end_point: EndPoint, /, *, receive_buffer_bytes: int, backlog: int) -> socket.socket: ...


def open_listening_socket(end_point: EndPoint, *, receive_buffer_bytes: int, backlog: int) -> socket.socket:
    """A bound, listening, non-blocking socket. No host means every interface, IPv4 and IPv6. Raises StartupError."""
    host, port = end_point.host or "0.0.0.0", end_point.port
    if not 0 <= port <= PORT_MAX:  # getaddrinfo takes larger ports modulo 65536
        raise StartupError(f"Socket server failed to bind to {host}:{port}: port out of range.")
    try:
        listening = _bind(end_point, receive_buffer_bytes)
        listening.listen(backlog)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartupError(f"Socket server failed to bind to {host}:{port}: {reason}.") from error
    except UnicodeError as error:  # a host name that cannot be encoded
        raise StartupError(f"Socket server failed to bind to {host}:{port}: {error}.") from error
    listening.setblocking(False)
    return listening


def bound_port(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def _bind(end_point: EndPoint, receive_buffer_bytes: int) -> socket.socket:
    if end_point.host is None:
        with contextlib.suppress(OSError):  # no IPv6 on this machine; a port in use fails again below
            return _bind_address(socket.AF_INET6, ("::", end_point.port), receive_buffer_bytes, dual_stack=True)
        return _bind_address(socket.AF_INET, ("0.0.0.0", end_point.port), receive_buffer_bytes)
    host = end_point.host.encode() if end_point.host.isascii() else end_point.host  # a text imports `encodings.idna`
    found = socket.getaddrinfo(host, end_point.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return _bind_address(family, cast("tuple[str | int, ...]", address), receive_buffer_bytes)


def _bind_address(
    family: int, address: tuple[str | int, ...], receive_buffer_bytes: int, *, dual_stack: bool = False
) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual_stack:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if receive_buffer_bytes != USE_OS_DEFAULT:
            # Inherited by accepted connections; set before listening so that the window can be scaled to it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening
