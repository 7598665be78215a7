"""HTTP for faults on a loopback address: one request a connection, JSON both ways.

There is no authentication, so other machines and web pages are kept out: the address is loopback, the `Host` of each
request is a name of it (else a web page could reach it by a DNS name that changes its address), a request with an
`Origin` comes from a web page and is refused, and a body is `application/json`. The number of connections, the bytes of
a request and the time that it takes are limited.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from odradek.broker.faults.http.http_api import RULES, Answer
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.machine.timed_waits import Deadline
from odradek.broker.network.listeners.http_requests import end_response, http_server, listen, read_head

if TYPE_CHECKING:
    from odradek.broker.faults.http.http_api import HttpApi
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 128 * 1024
"""A body is parsed in one turn of the event loop. The worst case, lists in lists, takes 25 ms; the 500 events of a
record that fit in take 15 ms.
"""

REQUEST_TIMEOUT_MS: Final = 10_000
"""Within this time, by the broker's clock, the request has come and its answer is read."""

_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class HttpListener:
    """One listening socket and its connections."""

    def __init__(self, api: HttpApi, timer: SystemTimer) -> None:
        self._api = api
        self._timer = timer
        self._server = http_server(self._serve)
        self._hosts: frozenset[str] = frozenset()

    async def start(self, host: str, port: int) -> str:
        """Listen; returns the URL of the rules. Raises: StartupError."""
        bound = await listen(self._server, "--faults-listener", host, port)
        name = f"[{host}]" if ":" in host else host
        self._hosts = frozenset(f"{each}:{bound}" for each in {*_NAMES, name})
        return f"http://{name}:{bound}{RULES}"

    async def close(self) -> None:
        """Stop listening and drop the connections."""
        await self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with Deadline(self._timer, REQUEST_TIMEOUT_MS, lambda: "a request about faults"):
                await send(writer, await self._answer(reader))
                await end_response(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            logger.debug("Closed a connection for faults: %s", error)

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        head = await read_head(reader)
        if isinstance(head, HTTPStatus):
            return _refusal(head)
        headers = dict(head.headers)
        if len(headers) < len(head.headers) or "transfer-encoding" in headers:
            return _refusal(HTTPStatus.BAD_REQUEST)
        if headers.get("host", "").lower() not in self._hosts or "origin" in headers:
            return _refusal(HTTPStatus.FORBIDDEN)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < 12):
            return _refusal(HTTPStatus.BAD_REQUEST)
        if int(length) > MAX_BODY_BYTES:
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if head.method in ("POST", "PUT") and headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        body = await reader.readexactly(int(length))
        return self._api.answer(head.method, head.path, body)


def loopback(text: str) -> tuple[str, int]:
    """Host and port of `--faults-listener`. Raises: StartupError if it is no loopback address with a port."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise StartupError(f"--faults-listener {text}: is no HOST:PORT")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise StartupError(
            f"--faults-listener {text}: {host or 'every address'} is not loopback. Whoever reaches the listener can "
            "break the broker: give 127.0.0.1, ::1 or localhost"
        )
    return host, int(port)


def _refusal(status: HTTPStatus) -> Answer:
    return Answer(status, {"error": status.phrase})


async def send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Long lists are sent as they are encoded. The end of the connection ends the body, so it needs no length."""
    phrase = HTTPStatus(answer.status).phrase
    head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("latin-1"))
    for piece in answer.pieces():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)  # drain waits only for a client that reads slowly
