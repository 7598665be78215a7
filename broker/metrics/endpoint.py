"""The endpoint of the metrics: HTTP, `GET /metrics` and nothing else, one request a connection.

There is no authentication: keep the port on loopback or in a network that you trust. The cost of clients is limited:
the number of connections, the bytes of a request's head, the time until it has arrived, the time until the
response is read, and the scrapes at once (one; the others wait for it, and are not made if their client has closed
the connection meanwhile). A scrape that takes longer than that time ends; its client gets nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.machine.timed_waits import deadline
from odradek.controller.loop_turns import in_turns

if TYPE_CHECKING:
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 16
"""More are closed at once."""

MAX_HEAD_BYTES: Final = 8 * 1024
"""Of the request line and the headers."""

HEAD_TIMEOUT_MS: Final = 5_000
"""Within this time the head has arrived."""

SEND_TIMEOUT_MS: Final = 30_000
"""Within this time the response is made and read."""

PARTS_A_TURN: Final = 8
"""Parts of the text, of about 6 KB, that are written between two turns of the event loop."""

PATH: Final = "/metrics"

Render = Callable[[str], Awaitable[tuple[str, list[bytes]]]]
"""From the `Accept` header to the content type and the parts of the text."""


class ScrapeFailedError(Exception):
    """The text could not be made. The cause is logged where it was met."""


class MetricsEndpoint:
    """One listening socket and its connections."""

    def __init__(self, render: Render, timer: SystemTimer) -> None:
        self._render = render
        self._timer = timer
        self._one_scrape = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises: StartupError."""
        try:
            self._server = await asyncio.start_server(self._accepted, host, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise StartupError(f"Cannot listen on odradek.metrics.listener {host}:{port}: {error.strerror}") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        logger.info("Metrics are served at http://%s:%d%s", host, bound, PATH)
        return bound

    async def close(self) -> None:
        """Stop listening and drop the connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with deadline(self._timer, HEAD_TIMEOUT_MS, "the head of a request for metrics"):
                head = await _read_head(reader)
            with deadline(self._timer, SEND_TIMEOUT_MS, "the response to a request for metrics"):
                async for part in in_turns(await self._response(head, reader), PARTS_A_TURN):
                    writer.write(part)
                    await writer.drain()  # does not wait while the kernel takes all of it
                writer.write_eof()
                await writer.drain()
                await reader.read(1)  # the client closes: nothing is lost by a reset
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            logger.debug("Closed a connection for metrics: %s", error)
        finally:
            writer.transport.abort()

    async def _response(self, head: bytes | None, reader: asyncio.StreamReader) -> list[bytes]:
        if head is None:
            return [_status("431 Request Header Fields Too Large")]
        line, *headers = head.decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return [_status("400 Bad Request")]
        if words[1].partition("?")[0] != PATH:
            return [_status("404 Not Found")]
        if words[0] != "GET":
            return [_status("405 Method Not Allowed", "Allow: GET\r\n")]
        fields = (header.partition(":") for header in headers)
        accept = ",".join(value for name, _, value in fields if name.lower() == "accept")
        has_to_wait = self._one_scrape.locked()
        try:
            async with self._one_scrape:
                if has_to_wait and reader.at_eof():
                    return []
                content_type, parts = await self._render(accept)
        except ScrapeFailedError:
            return [_status("500 Internal Server Error")]
        size = sum(map(len, parts))
        return [_status("200 OK", f"Content-Type: {content_type}\r\n", size), *parts]


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    """The request line and the headers; None if they are too large."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None


def _status(status: str, headers: str = "", size: int = 0) -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {size}\r\nConnection: close\r\n\r\n".encode("latin-1")
