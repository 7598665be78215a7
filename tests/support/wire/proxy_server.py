"""A TCP server in a thread of its own, for proxies. When it is closed, all its connections are.

A transport that the garbage collector finds open is a warning, which fails the test that runs then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from odradek.broker.network.sockets.stream_server import Serve, StreamServer
from tests.support.processes.ports import LOOPBACK, free_port


class ProxyServer:
    """`serve` gets each connection, which is closed when it returns."""

    def __init__(self, serve: Serve) -> None:
        self.port = free_port()
        self.failures: list[BaseException] = []
        """Exceptions of the coroutines that run here."""
        self.loop = asyncio.new_event_loop()
        self._serve = serve
        self._server = StreamServer(self._serve_one)
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(LOOPBACK, self.port), self.loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until it ends or the server is closed."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failures.append(failure)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(self._ended)
        async with closing(writer):
            await self._serve(reader, writer)

    async def _end(self) -> None:
        await self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


@asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Closes a connection when all that was written is sent, and at once when the block is cancelled."""
    try:
        yield
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    finally:
        writer.transport.abort()
