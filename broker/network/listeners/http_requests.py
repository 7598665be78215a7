"""The HTTP of small listeners without authentication: one request a connection, with limits on what a client can cost.

The number of connections and the bytes of a request's head are limited here, the time by the listeners.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final, NamedTuple

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.sockets.stream_server import Serve, StreamServer

MAX_CONNECTIONS: Final = 16
"""More are closed at once."""

MAX_HEAD_BYTES: Final = 8 * 1024
"""Of the request line and the headers."""

_CHUNK_BYTES: Final = 64 * 1024


class Head(NamedTuple):
    """The request line and the headers."""

    method: str
    path: str
    """Without the query."""
    headers: list[tuple[str, str]]
    """Names in lower case and values, in the order of the request."""


def http_server(serve: Serve) -> StreamServer:
    return StreamServer(serve, max_connections=MAX_CONNECTIONS, buffer_bytes=MAX_HEAD_BYTES)


async def listen(server: StreamServer, option: str, host: str, port: int) -> int:
    """Start the server; returns the port. Raises: StartupError, which names the option."""
    try:
        return await server.start(host, port)
    except OSError as error:
        raise StartupError(f"Cannot listen on {option} {host}:{port}: {error.strerror}") from error


async def read_head(reader: asyncio.StreamReader) -> Head | HTTPStatus:
    """Returns the error status that answers a head which is refused.

    Raises: IncompleteReadError if the client closes before the end of the head.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return HTTPStatus.BAD_REQUEST
    fields = (line.partition(":") for line in lines)
    headers = [(name.strip().lower(), value.strip()) for name, _, value in fields]
    return Head(words[0], words[1].partition("?")[0], headers)


async def end_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send all of the response, and wait until the client closes.

    A connection that is closed while bytes of the client are unread is reset, and the client loses what it has not
    read of the response. So what is left of the request is read here.
    """
    writer.write_eof()
    while await reader.read(_CHUNK_BYTES):
        pass
    writer.close()
    await writer.wait_closed()
