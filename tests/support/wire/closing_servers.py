"""Connections that a server is accepting when it is closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Awaitable, Callable

TURNS = 6
"""Turns of the event loop until a connection is accepted and served."""

TIME_LIMIT_S = 10

Start = Callable[[], Awaitable[tuple[int, Callable[[], Awaitable[None]]]]]
"""Starts a server on loopback; returns its port and the function that closes it."""


async def close_while_accepting(start: Start) -> None:
    """Close a server in each turn between the connect of a client and its service; the connection must end.

    A socket that is left open is a ResourceWarning, which fails the test.
    """
    for turns in range(TURNS):
        port, close = await start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
            await close()
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), TIME_LIMIT_S) == b""
    gc.collect()
