"""`odradek health HOST:PORT`: checks whether a broker answers, for the health check of a container.

Sends one ApiVersions request, which a broker answers without authentication. Uses a blocking socket with a time-out.
"""

from __future__ import annotations

import socket
import sys

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import DecodeError
from odradek.protocol.framing import frame_prefix
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 64 * 1024
CORRELATION_ID = 1


def main(address: str) -> int:
    """Exit status 0 when the broker answers, else 1 with one line that says why."""
    host, _, port = address.rpartition(":")
    try:
        check(host.strip("[]") or "127.0.0.1", int(port))
    except (OSError, ValueError, DecodeError) as error:
        sys.stderr.write(f"odradek: no healthy broker at {address}: {error}\n")
        return 1
    return 0


def check(host: str, port: int) -> None:
    """Raises: OSError without an answer in time; DecodeError or ValueError if the answer is not a broker's."""
    header = RequestHeader(ApiKey.API_VERSIONS, 0, CORRELATION_ID, "odradek-health")
    request = encode_request(header, ApiVersionsRequest())
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
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
