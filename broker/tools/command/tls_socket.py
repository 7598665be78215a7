"""A non-blocking socket with TLS that behaves as one without: it raises BlockingIOError while it has to wait."""

from __future__ import annotations

import socket
import ssl

from odradek.broker.tools.command.socket_loop import READ, WRITE, wait_for


class TlsSocket:
    """The calls of a socket that `SocketLink` makes."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, connected: socket.socket, context: ssl.SSLContext, host: str, until_ms: int) -> TlsSocket:
        """Make the handshake on a connected non-blocking socket, which is taken over. Raises: OSError."""
        connection = context.wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        try:
            while True:
                try:
                    connection.do_handshake()
                    return cls(connection)
                except ssl.SSLWantReadError:
                    await wait_for(connection, READ, until_ms)
                except ssl.SSLWantWriteError:
                    await wait_for(connection, WRITE, until_ms)
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, data: bytes | memoryview) -> int:
        try:
            return self._connection.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def recv(self, size: int) -> bytes:
        try:
            return self._connection.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def close(self) -> None:
        self._connection.close()
