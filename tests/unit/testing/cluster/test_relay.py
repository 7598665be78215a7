from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from odradek.broker.network.sockets.stream_server import stop_listening
from odradek.testing.cluster.relay import Relay
from tests.support.async_test import async_test
from tests.support.wire.closing_servers import close_while_accepting


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


@async_test
async def test_bytes_wait_while_the_way_is_cut() -> None:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    relay = Relay(server.sockets[0].getsockname()[1])
    await relay.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    writer.write(b"one")
    assert await reader.readexactly(3) == b"one"
    relay.cut()
    writer.write(b"two")
    late_reader, late_writer = await asyncio.open_connection("127.0.0.1", relay.port)
    late_writer.write(b"late")
    waiting = [asyncio.create_task(reader.readexactly(3)), asyncio.create_task(late_reader.readexactly(4))]
    done, _ = await asyncio.wait(waiting, timeout=0.05)
    assert not done
    relay.heal()
    assert await asyncio.gather(*waiting) == [b"two", b"late"]
    await _close(writer)
    await _close(late_writer)
    await relay.close()
    server.close()


@async_test
async def test_a_target_that_is_away_closes_the_connection() -> None:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    relay = Relay(port)
    await relay.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    assert await reader.read() == b""
    await _close(writer)
    await relay.close()


@async_test
async def test_connections_end_with_the_relay_also_while_they_are_accepted() -> None:
    async def start() -> tuple[int, Callable[[], Awaitable[None]]]:
        relay = Relay(target)
        await relay.start()
        return relay.port, relay.close

    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    target = server.sockets[0].getsockname()[1]
    await close_while_accepting(start)
    await stop_listening(server)
