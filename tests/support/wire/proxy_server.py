"""A TCP server in a thread of its own, for proxies. When it is closed, all its connections are.

An `asyncio.Server` does not close the connections that it has accepted. A transport that the garbage collector finds
open is a warning, which fails the test that runs then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from tests.support.processes.ports import LOOPBACK, free_port

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class ProxyServer:
    """`serve` gets each connection, which is closed when it returns."""

    def __init__(self, serve: Serve) -> None:
        self.port = free_port()
        self.failures: list[BaseException] = []
        """Exceptions of the coroutines that run here."""
        self.loop = asyncio.new_event_loop()
        self._serve = serve
        self._is_closing = False
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter | None] = {}
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        listen = asyncio.start_server(self._accept, LOOPBACK, self.port)
        self._server = asyncio.run_coroutine_threadsafe(listen, self.loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def spawn(self, work: Coroutine[Any, Any, None], writer: asyncio.StreamWriter | None = None) -> None:
        """Run a coroutine until it ends or the server is closed."""
        task = self.loop.create_task(work)
        self._tasks[task] = writer
        task.add_done_callback(self._ended)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closing:
            writer.transport.abort()
        else:
            self.spawn(self._serve_one(reader, writer), writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with closing(writer):
            await self._serve(reader, writer)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failures.append(failure)

    async def _end(self) -> None:
        self._is_closing = True
        # asyncio has a task for each connection that it accepts. Begun after the end of the server, it fails and leaves
        # the connection open.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task, writer in self._tasks.items():
                task.cancel()
                if writer is not None:  # a task that has not begun yet closes nothing
                    writer.transport.abort()
            await asyncio.wait(tasks)
        self._server.close()


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
