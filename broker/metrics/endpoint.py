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
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.timed_waits import Deadline
from odradek.broker.network.listeners.http_requests import Head, end_response, http_server, listen, read_head
from odradek.controller.loop_turns import in_turns

if TYPE_CHECKING:
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

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
        self._server = http_server(self._serve)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises: StartupError."""
        bound = await listen(self._server, "odradek.metrics.listener", host, port)
        logger.info("Metrics are served at http://%s:%d%s", host, bound, PATH)
        return bound

    async def close(self) -> None:
        """Stop listening and drop the connections."""
        await self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with Deadline(self._timer, HEAD_TIMEOUT_MS, lambda: "the head of a request for metrics"):
                head = await read_head(reader)
            with Deadline(self._timer, SEND_TIMEOUT_MS, lambda: "the response to a request for metrics"):
                async for part in in_turns(await self._response(head, reader), PARTS_A_TURN):
                    writer.write(part)
                    await writer.drain()  # does not wait while the kernel takes all of it
                await end_response(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            logger.debug("Closed a connection for metrics: %s", error)

    async def _response(self, head: Head | HTTPStatus, reader: asyncio.StreamReader) -> list[bytes]:
        if isinstance(head, HTTPStatus):
            return [_status(head)]
        if head.path != PATH:
            return [_status(HTTPStatus.NOT_FOUND)]
        if head.method != "GET":
            return [_status(HTTPStatus.METHOD_NOT_ALLOWED, "Allow: GET\r\n")]
        accept = ",".join(value for name, value in head.headers if name == "accept")
        has_to_wait = self._one_scrape.locked()
        try:
            async with self._one_scrape:
                if has_to_wait and reader.at_eof():
                    return []
                content_type, parts = await self._render(accept)
        except ScrapeFailedError:
            return [_status(HTTPStatus.INTERNAL_SERVER_ERROR)]
        size = sum(map(len, parts))
        return [_status(HTTPStatus.OK, f"Content-Type: {content_type}\r\n", size), *parts]


def _status(status: HTTPStatus, headers: str = "", size: int = 0) -> bytes:
    line = f"HTTP/1.1 {status} {status.phrase}\r\n"
    return f"{line}{headers}Content-Length: {size}\r\nConnection: close\r\n\r\n".encode("latin-1")
