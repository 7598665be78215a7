"""A client of one connection that sends exactly the given request, in exactly the given version.

It is built on our own codec, which the wire oracle compares with Kafka's classes; frames can also be sent as bytes.
"""

from __future__ import annotations

import fcntl
import socket
import ssl
import struct
import termios
from array import array
from typing import Self

from odradek.protocol.api import API
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.headers import RequestHeader, decode_response, encode_request

ANSWER_TIMEOUT_S = 60
"""A new JVM takes up to 2 s of processor time for its first request of a kind; a busy machine gives it little."""
CLIENT_ID = "raw"


class ConnectionClosedError(Exception):
    """The broker closed the connection instead of answering."""


class RawClient:
    """One TCP connection to a broker."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = CLIENT_ID,
        timeout_s: float = ANSWER_TIMEOUT_S,
        source_host: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`source_host`: the own address, if it is not to be chosen by the system. `tls`: for a listener with TLS."""
        source = (source_host, 0) if source_host else None
        self._socket = socket.create_connection((host, port), timeout=timeout_s, source_address=source)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._client_id = client_id
        self._correlation_id = 0

    @property
    def tls_session(self) -> ssl.SSLSession | None:
        """To be resumed by another connection; the broker's ticket comes with what it sends after the handshake."""
        return self._socket.session if isinstance(self._socket, ssl.SSLSocket) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close the connection with a RST."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def call(self, request: Request, version: int) -> Response:
        """Send a request and return its answer."""
        self.send(request, version)
        return self.receive(request.API_KEY, version)

    def send(self, request: Request, version: int) -> int:
        """Send a request and return its correlation id; `receive` takes the answers in order."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        self.send_frame(encode_request(header, request))
        return self._correlation_id

    def receive(self, api_key: int, version: int, correlation_id: int | None = None) -> Response:
        """The next answer, which must belong to that request (by default the last one sent)."""
        payload = self.receive_frame()
        answered, response = decode_response(api_key, version, payload)
        expected = self._correlation_id if correlation_id is None else correlation_id
        assert answered == expected, f"{API[api_key].name}: answer to request {answered} instead of {expected}"
        return response

    def send_frame(self, payload: bytes) -> None:
        """Send bytes with their length before them."""
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosedError from error

    def receive_frame(self) -> bytes:
        return self._read(self.receive_size())

    def receive_size(self) -> int:
        """The size of the next answer, which is not read."""
        (size,) = struct.unpack(">i", self._read(4))
        return int(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except ConnectionResetError as error:
                raise ConnectionClosedError from error
            if not part:
                raise ConnectionClosedError(f"after {len(data)} of {size} bytes")
            data += part
        return bytes(data)

    def unread_bytes(self) -> int:
        """Bytes that have arrived and were not read."""
        return int(array("i", fcntl.ioctl(self._socket, termios.FIONREAD, bytes(4)))[0])

    def is_closed(self) -> bool:
        """Whether the broker has closed the connection by now. Nothing that was sent may be unread."""
        timeout_s = self._socket.gettimeout()
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True
        finally:
            self._socket.settimeout(timeout_s)

    def awaits_close(self) -> bool:
        """Whether the broker closes the connection without sending anything (else: it sent bytes; or a timeout)."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
