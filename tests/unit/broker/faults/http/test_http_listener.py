from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.faults.http.http_api import Answer, Entries, HttpApi
from odradek.broker.faults.http.http_listener import (
    MAX_BODY_BYTES,
    REQUEST_TIMEOUT_MS,
    HttpListener,
    loopback,
    send,
)
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners.http_requests import MAX_CONNECTIONS, MAX_HEAD_BYTES
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.connections.faulty_dispatching import Faulty
from tests.support.wire.closing_servers import close_while_accepting


class Listening:
    """A listener on a free port of loopback, with a clock of the test."""

    def __init__(self) -> None:
        self.broker = Faulty()
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.listener = HttpListener(HttpApi(self.broker.faults), self.timer)
        self.url = ""

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://").removesuffix("/faults")

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", int(self.host.rpartition(":")[2]))

    async def ask(self, head: str, body: bytes = b"", *, host: str | None = None) -> tuple[int, object]:
        reader, writer = await self.open()
        writer.write(f"{head}\r\nHost: {host or self.host}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            answer = await reader.read()
        finally:
            writer.close()
        first, _, content = answer.partition(b"\r\n\r\n")
        return int(first.split(b" ")[1]), json.loads(content) if content else None


def run(work: Callable[[Listening], Awaitable[None]]) -> None:
    async def main() -> None:
        listening = Listening()
        listening.url = await listening.listener.start("127.0.0.1", 0)
        try:
            await asyncio.wait_for(work(listening), 20)
        finally:
            await listening.listener.close()
            listening.broker.close()

    asyncio.run(main())


POST = "POST /faults HTTP/1.1\r\nContent-Type: application/json; charset=utf-8"
RULE = json.dumps({"action": "drop"}).encode()


def test_rules_come_over_http() -> None:
    async def work(listening: Listening) -> None:
        assert await listening.ask(POST, RULE) == (201, {"ids": [1]})
        port = listening.host.rpartition(":")[2]
        for name in ("localhost", "LOCALHOST", "[::1]"):
            assert (await listening.ask("GET /faults?x=1 HTTP/1.0", host=f"{name}:{port}"))[0] == 200
        assert await listening.ask("DELETE /faults/1 HTTP/1.1") == (204, None)
        assert (await listening.ask("GET /else HTTP/1.1"))[0] == 404

    run(work)


@pytest.mark.parametrize(
    ("head", "body", "host", "status"),
    [
        ("GET /faults HTTP/1.1", b"", "evil.example", 403),
        ("GET /faults HTTP/1.1", b"", "evil.example:{port}", 403),
        ("GET /faults HTTP/1.1", b"", "127.0.0.1", 403),
        ("GET /faults HTTP/1.1\r\nHost: 127.0.0.1:{port}", b"", None, 400),
        ("GET /faults HTTP/1.1\r\nOrigin: http://evil.example", b"", None, 403),
        ("POST /faults HTTP/1.1\r\nContent-Type: text/plain", RULE, None, 415),
        ("POST /faults HTTP/1.1", RULE, None, 415),
        (POST + "\r\nTransfer-Encoding: chunked", b"", None, 400),
        (POST + "\r\nContent-Length: 3", b"", None, 400),
        ("GET /faults", b"", None, 400),
        ("GET /faults HTTP/2.0", b"", None, 400),
        ("GET /faults HTTP/1.1\r\nX: " + "x" * MAX_HEAD_BYTES, b"", None, 431),
    ],
    ids=lambda value: str(value)[:40],
)
def test_requests_of_web_pages_and_broken_ones_are_refused(
    head: str, body: bytes, host: str | None, status: int
) -> None:
    async def work(listening: Listening) -> None:
        port = listening.host.rpartition(":")[2]
        name = None if host is None else host.replace("{port}", port)
        found, _ = await listening.ask(head.replace("{port}", port), body, host=name)
        assert found == status
        assert listening.broker.faults.rules() == []

    run(work)


def test_the_longest_body_is_taken() -> None:
    async def work(listening: Listening) -> None:
        assert await listening.ask(POST, RULE.ljust(MAX_BODY_BYTES)) == (201, {"ids": [1]})
        assert (await listening.ask(POST, RULE.ljust(MAX_BODY_BYTES + 1)))[0] == 413

    run(work)


def test_other_work_goes_on_between_the_pieces_of_a_long_answer() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        class Writer:
            def write(self, data: bytes) -> None:
                seen.append("piece")

            async def drain(self) -> None:
                """The client reads as fast as it is sent."""

        async def other_work() -> None:
            while True:
                seen.append("other work")
                await asyncio.sleep(0)

        other = asyncio.create_task(other_work())
        answer = Answer(200, {}, Entries("faults", ({"id": number} for number in range(100))))
        await send(Writer(), answer)  # type: ignore[arg-type]
        other.cancel()
        return seen

    seen = asyncio.run(main())
    assert seen.count("piece") == 8
    assert ["piece", "piece"] not in [seen[at : at + 2] for at in range(1, len(seen))]  # the head and the first piece


@pytest.mark.parametrize(("length", "status"), [(MAX_BODY_BYTES + 1, 413), ("-1", 400), ("1e3", 400), ("9" * 40, 400)])
def test_a_body_has_a_size_that_fits(length: object, status: int) -> None:
    async def work(listening: Listening) -> None:
        reader, writer = await listening.open()
        writer.write(f"{POST}\r\nHost: {listening.host}\r\nContent-Length: {length}\r\n\r\n".encode())
        assert f" {status} ".encode() in await reader.read()
        writer.close()

    run(work)


def test_a_client_that_does_not_go_on_is_dropped_by_the_clock_of_the_broker() -> None:
    async def work(listening: Listening) -> None:
        reader, writer = await listening.open()
        writer.write(b"GET /faults")
        await asyncio.sleep(0.01)
        listening.clock.advance(REQUEST_TIMEOUT_MS)
        listening.timer.advance()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()

    run(work)


def test_there_is_a_limit_of_connections() -> None:
    async def work(listening: Listening) -> None:
        held = [await listening.open() for _ in range(MAX_CONNECTIONS)]
        await asyncio.sleep(0.01)
        with pytest.raises((ConnectionResetError, IndexError)):
            await listening.ask("GET /faults HTTP/1.1")
        for _, writer in held:
            writer.close()

    run(work)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("localhost:80", ("localhost", 80)), ("[::1]:7", ("::1", 7))],
)
def test_loopback_addresses(text: str, expected: tuple[str, int]) -> None:
    assert loopback(text) == expected


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1", "10.0.0.1:1", ":1", "[::]:1", "example.com:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(StartupError):
        loopback(text)


def test_a_port_that_is_taken_is_a_line_for_the_operator() -> None:
    async def work(listening: Listening) -> None:
        port = int(listening.host.rpartition(":")[2])
        with pytest.raises(StartupError, match="Cannot listen on --faults-listener"):
            await HttpListener(HttpApi(listening.broker.faults), listening.timer).start("127.0.0.1", port)

    run(work)


def test_connections_end_with_the_listener_also_while_they_are_accepted() -> None:
    async def start() -> tuple[int, Callable[[], Awaitable[None]]]:
        listening = Listening()
        listening.broker.close()
        listening.url = await listening.listener.start("127.0.0.1", 0)
        return int(listening.host.rpartition(":")[2]), listening.listener.close

    asyncio.run(close_while_accepting(start))
