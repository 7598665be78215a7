"""Many connections of one process, each with one request under way at a time."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from tests.support.wire.requests import build

AT_ONCE: Final = 40
"""Connections that are opened at the same time: a broker has room for 50 (`socket.listen.backlog.size`)."""
API_VERSIONS: Final = build(ApiKey.API_VERSIONS)


class Connection:
    """One connection; its answers come in the order of its requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def exchange(self, frame: bytes) -> bytes:
        """Send a frame with its length before it; the answer without its length."""
        self._writer.write(frame)
        return await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4), "big"))

    async def call(self, request: Request, version: int) -> Any:
        payload = encode_request(RequestHeader(request.API_KEY, version, 1, "bench"), request)
        answer = await self.exchange(struct.pack(">i", len(payload)) + payload)
        return decode_response(request.API_KEY, version, answer)[1]

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def connections(host: str, port: int, count: int) -> AsyncIterator[list[Connection]]:
    """So many connections, each with an answer to ApiVersions, which clients ask first."""
    made: list[Connection] = []

    async def open_one() -> None:
        connection = Connection(*await asyncio.open_connection(host, port))
        made.append(connection)
        await connection.call(API_VERSIONS, 0)

    try:
        while len(made) < count:
            await asyncio.gather(*(open_one() for _ in range(min(AT_ONCE, count - len(made)))))
        yield made
    finally:
        for connection in made:
            connection.close()


async def latencies(made: Sequence[Connection], frame: bytes, requests: int, at_once: int) -> list[float]:
    """Seconds of each of so many requests. The connections take turns, `at_once` of them wait for an answer."""
    waiting = iter(range(requests))
    found: list[float] = []

    async def ask(own: Sequence[Connection]) -> None:
        for connection, _ in zip(cycle(own), waiting, strict=False):
            started = time.perf_counter()
            await connection.exchange(frame)
            found.append(time.perf_counter() - started)

    await asyncio.gather(*(ask(made[first::at_once]) for first in range(min(at_once, len(made)))))
    return found
