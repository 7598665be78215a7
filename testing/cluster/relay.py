"""A way to a server that can be cut: bytes wait while it is, as when a network loses every packet.

Connections that are made meanwhile are accepted and get no answer. When the way is healed, what has waited goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from odradek.broker.network.sockets.stream_server import StreamServer

HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 1 << 16


class Relay:
    """All methods run on one event loop."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._server = StreamServer(self._serve)
        self.port = 0

    async def start(self) -> None:
        self.port = await self._server.start(HOST, 0)

    def cut(self) -> None:
        self._is_whole.clear()

    def heal(self) -> None:
        self._is_whole.set()

    async def close(self) -> None:
        await self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await self._is_whole.wait()
            target_reader, target_writer = await asyncio.open_connection(HOST, self._target_port)
            try:
                await self._carry_both_ways((reader, target_writer), (target_reader, writer))
                await _close(writer)
                await _close(target_writer)
            finally:
                target_writer.transport.abort()

    async def _carry_both_ways(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Until one of them ends."""
        carrying = [asyncio.create_task(self._carry(*way)) for way in ways]
        try:
            await asyncio.wait(carrying, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in carrying:
                task.cancel()
            await asyncio.gather(*carrying, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._is_whole.wait()
                writer.write(data)
                await writer.drain()
            await self._is_whole.wait()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
