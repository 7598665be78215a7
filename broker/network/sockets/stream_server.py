"""A server of stream connections on one host and port, which leaves nothing open when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
"""Serves one connection. What is not sent when it returns is dropped."""

_BUFFER_BYTES: Final = 64 * 1024


class StreamServer:
    """One task serves each connection, which is closed when the task ends."""

    def __init__(self, serve: Serve, *, max_connections: int | None = None, buffer_bytes: int = _BUFFER_BYTES) -> None:
        """More connections than `max_connections` are closed at once. `buffer_bytes`: the limit of each reader."""
        self._serve = serve
        self._max_connections = max_connections
        self._buffer_bytes = buffer_bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises: OSError."""
        self._server = await asyncio.start_server(self._accepted, host, port, limit=self._buffer_bytes)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and drop the connections."""
        if self._server is not None:
            await stop_listening(self._server)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._max_connections is not None and len(self._tasks) >= self._max_connections:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, writer))

    def _ended(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        """Close the connection, also that of a task that was cancelled before it began."""
        self._tasks.discard(task)
        writer.transport.abort()


async def stop_listening(server: asyncio.Server) -> None:
    """Close the listening sockets. When it returns, the protocols have all connections that were accepted.

    asyncio makes a task for each connection that it accepts. Begun after the end of the server, the task fails and
    leaves the socket to the garbage collector. So the server accepts no more, these tasks begin, then it is closed.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)  # the tasks make the transports
    await asyncio.sleep(0)  # the transports call connection_made
    server.close()
