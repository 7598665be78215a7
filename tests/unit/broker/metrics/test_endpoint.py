from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.metrics.endpoint import (
    HEAD_TIMEOUT_MS,
    PARTS_A_TURN,
    SEND_TIMEOUT_MS,
    MetricsEndpoint,
)
from odradek.broker.network.listeners.http_requests import MAX_CONNECTIONS, MAX_HEAD_BYTES
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.wire.closing_servers import close_while_accepting

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n"


class Endpoint:
    """An endpoint on loopback, with a clock of the test."""

    def __init__(self, size: int = 3) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.accepted: list[str] = []
        self.rendering = 0
        self.most_at_once = 0
        self.size = size
        self.endpoint = MetricsEndpoint(self.render, self.timer)
        self.port = 0

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        self.rendering += 1
        self.most_at_once = max(self.most_at_once, self.rendering)
        await asyncio.sleep(0)
        self.rendering -= 1
        self.accepted.append(accept.strip())
        return "text/x", [b"x" * self.size]

    async def ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer


def run(work: Callable[[Endpoint], Awaitable[None]], size: int = 3) -> Endpoint:
    async def main() -> Endpoint:
        endpoint = Endpoint(size)
        endpoint.port = await endpoint.endpoint.start("127.0.0.1", 0)
        try:
            await asyncio.wait_for(work(endpoint), 20)
        finally:
            await endpoint.endpoint.close()
        return endpoint

    return asyncio.run(main())


def test_one_path_one_method() -> None:
    async def work(endpoint: Endpoint) -> None:
        answer = await endpoint.ask(GET)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\n")
        assert answer.endswith(b"\r\n\r\nxxx")
        assert b" 404 " in await endpoint.ask(GET.replace(b"/metrics", b"/"))
        assert b" 405 Method Not Allowed\r\nAllow: GET\r\n" in await endpoint.ask(GET.replace(b"GET", b"POST"))
        assert b" 400 " in await endpoint.ask(b"junk\r\n\r\n")
        assert b" 400 " in await endpoint.ask(b"\xff\xfe \r\n\r\n")
        assert b" 200 " in await endpoint.ask(GET.replace(b"/metrics", b"/metrics?name=x"))

    assert run(work).accepted == ["text/plain"] * 2


def test_a_head_has_a_limit() -> None:
    async def work(endpoint: Endpoint) -> None:
        fits = GET[:-2] + b"X: " + b"y" * (MAX_HEAD_BYTES - len(GET) - 10) + b"\r\n\r\n"
        assert b" 200 " in await endpoint.ask(fits)
        assert b" 431 " in await endpoint.ask(GET[:-2] + b"X: " + b"y" * MAX_HEAD_BYTES)

    run(work)


def test_a_client_that_sends_slowly_is_cut_off() -> None:
    async def work(endpoint: Endpoint) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write(GET[:-1])
        while not endpoint.timer.size:
            await asyncio.sleep(0)
        endpoint.clock.advance(HEAD_TIMEOUT_MS - 1)
        endpoint.timer.advance()
        assert not reader.at_eof()
        endpoint.clock.advance(1)
        endpoint.timer.advance()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()

    run(work)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def work(endpoint: Endpoint) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port, limit=1)
        writer.write(GET)
        while not endpoint.accepted or not endpoint.timer.size:
            await asyncio.sleep(0)
        endpoint.clock.advance(SEND_TIMEOUT_MS)
        endpoint.timer.advance()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(endpoint.size)
        writer.close()

    run(work, size=64 << 20)


def test_more_connections_than_allowed_are_closed_at_once() -> None:
    async def work(endpoint: Endpoint) -> None:
        held = [await asyncio.open_connection("127.0.0.1", endpoint.port) for _ in range(MAX_CONNECTIONS)]
        while endpoint.timer.size < MAX_CONNECTIONS:
            await asyncio.sleep(0)
        with pytest.raises((ConnectionResetError, AssertionError)):
            assert await endpoint.ask(GET) != b""
        held[0][1].write(GET)
        assert b" 200 " in await held[0][0].read()
        for _, writer in held:
            writer.close()

    run(work)


def test_scrapes_are_made_one_after_the_other() -> None:
    async def work(endpoint: Endpoint) -> None:
        answers = await asyncio.gather(*(endpoint.ask(GET) for _ in range(8)))
        assert all(b" 200 " in answer for answer in answers)

    endpoint = run(work)
    assert len(endpoint.accepted) == 8
    assert endpoint.most_at_once == 1


def test_a_scrape_whose_client_has_gone_while_it_waited_is_not_made() -> None:
    async def work(endpoint: Endpoint) -> None:
        async with endpoint.endpoint._one_scrape:
            _, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
            writer.write(GET)
            writer.close()
            while not endpoint.endpoint._one_scrape._waiters:  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            await writer.wait_closed()
            for _ in range(5):
                await asyncio.sleep(0)
        assert b" 200 " in await endpoint.ask(GET)

    assert run(work).accepted == ["text/plain"]


def test_the_text_is_written_in_turns() -> None:
    async def work(endpoint: Endpoint) -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async def render(accept: str) -> tuple[str, list[bytes]]:
            nonlocal turns
            turns = 0
            return "text/x", [b"x"] * 100 * PARTS_A_TURN

        endpoint.endpoint._render = render
        counting = asyncio.ensure_future(count())
        assert (await endpoint.ask(GET)).endswith(b"x" * 100 * PARTS_A_TURN)
        counting.cancel()
        assert turns >= 100

    run(work)


def test_a_port_in_use_refuses_the_start() -> None:
    async def work(endpoint: Endpoint) -> None:
        with pytest.raises(StartupError, match=r"odradek\.metrics\.listener"):
            await Endpoint().endpoint.start("127.0.0.1", endpoint.port)

    run(work)


def test_connections_end_with_the_endpoint_also_while_they_are_accepted() -> None:
    async def start() -> tuple[int, Callable[[], Awaitable[None]]]:
        endpoint = Endpoint().endpoint
        return await endpoint.start("127.0.0.1", 0), endpoint.close

    asyncio.run(close_while_accepting(start))
