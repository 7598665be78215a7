from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.network.sockets.stream_server import StreamServer
from tests.support.async_test import async_test
from tests.support.wire.closing_servers import close_while_accepting


async def _wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(1))
    await writer.drain()


@pytest.mark.parametrize("serve", [_wait, _echo])
def test_connections_end_with_the_server_also_while_they_are_accepted(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    async def start() -> tuple[int, Callable[[], Awaitable[None]]]:
        server = StreamServer(serve)  # type: ignore[arg-type]
        return await server.start("127.0.0.1", 0), server.close

    asyncio.run(close_while_accepting(start))


@async_test
async def test_a_connection_that_is_served_is_closed() -> None:
    server = StreamServer(_echo)
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"x")
    assert await reader.read() == b"x"
    writer.close()
    await server.close()


@async_test
async def test_more_connections_than_the_limit_are_closed_at_once() -> None:
    server = StreamServer(_echo, max_connections=2)
    port = await server.start("127.0.0.1", 0)
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    refused_reader, refused = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionResetError):
        assert await refused_reader.read() == b""
    for reader, writer in held:
        writer.write(b"x")
        assert await reader.read() == b"x"
    for writer in (refused, *(writer for _, writer in held)):
        writer.close()
    await server.close()


@async_test
async def test_a_server_that_was_not_started_can_be_closed() -> None:
    await StreamServer(_echo).close()
