"""`odradek health HOST:PORT`: checks whether a broker answers, for the health check of a container.

Sends one ApiVersions request, which a broker answers without authentication. Uses a blocking socket with a time-out.
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import DecodeError
from odradek.protocol.framing import frame_prefix
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 64 * 1024
CORRELATION_ID = 1


def main(address: str, command_config: str | None = None) -> int:
    """Exit status 0 when the broker answers, else 1 with one line that says why.

    `command_config`: a properties file with `security.protocol=SSL` and `ssl.*`.
    """
    host, _, port = address.rpartition(":")
    try:
        context = None if command_config is None else _tls_context(command_config)
        check(host.strip("[]") or "127.0.0.1", int(port), context)
    except (OSError, ValueError, DecodeError) as error:
        sys.stderr.write(f"odradek: no healthy broker at {address}: {error}\n")
        return 1
    return 0


def _tls_context(command_config: str) -> ssl.SSLContext | None:
    """Raises: ValueError if the file cannot be used."""
    from odradek.broker.tools.command.client_config import read_properties, tls_context
    from odradek.broker.tools.command.failures import CommandFailed

    try:
        return tls_context(read_properties(command_config))
    except CommandFailed as error:
        raise ValueError(str(error)) from error


def check(host: str, port: int, context: ssl.SSLContext | None = None) -> None:
    """Raises: OSError without an answer in time; DecodeError or ValueError if the answer is not a broker's."""
    header = RequestHeader(ApiKey.API_VERSIONS, 0, CORRELATION_ID, "odradek-health")
    request = encode_request(header, ApiVersionsRequest())
    with ExitStack() as opened:
        connection = opened.enter_context(socket.create_connection((host, port), timeout=TIMEOUT_S))
        if context is not None:
            connection = opened.enter_context(context.wrap_socket(connection, server_hostname=host))
        connection.sendall(frame_prefix(len(request)) + request)
        size = int.from_bytes(_receive(connection, 4), "big", signed=True)
        if not 0 < size <= ANSWER_BYTES_MAX:
            raise ValueError(f"the size of the response is {size} bytes")
        answer = _receive(connection, size)
    correlation_id, response = decode_response(ApiKey.API_VERSIONS, 0, memoryview(answer))
    if correlation_id != CORRELATION_ID or not isinstance(response, ApiVersionsResponse) or response.error_code:
        raise ValueError("unexpected response to ApiVersions")


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionError("the connection was closed")
        received += chunk
    return received
