"""A way to a server that can be cut: bytes wait while it is, as when a network loses every packet.

Connections that are made meanwhile are accepted and get no answer. When the way is healed, what has waited goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 1 << 16


class Relay:
    """All methods run on one event loop."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._is_whole.clear()

    def heal(self) -> None:
        self._is_whole.set()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the relay closes; asyncio would log the cancellation of a callback
        finally:
            self._serving.discard(task)
            await _close(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await self._is_whole.wait()
            target_reader, target_writer = await asyncio.open_connection(HOST, self._target_port)
            ways = [
                asyncio.create_task(self._carry(reader, target_writer)),
                asyncio.create_task(self._carry(target_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                await _close(target_writer)

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
