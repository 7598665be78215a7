from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.zookeeper.connection import ServiceConnection
from odradek.broker.zookeeper.server import CLOSE_TIMEOUT_MS, SESSIONLESS_TIMEOUT_MS, ZooKeeperServer
from odradek.broker.zookeeper.service_settings import make_settings
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.wire.closing_servers import close_while_accepting
from tests.support.wire.zookeeper_script import buf, create, i32, i64, path_and_watch

CREATE, EXISTS = 1, 3
TIMEOUT_MS = 4000


class RecordedTransport(asyncio.Transport):
    """The socket of one connection: what was written to it, and what is waiting in it."""

    def __init__(self, address: str = "10.0.0.1") -> None:
        super().__init__({"peername": (address, 1234)})
        self.written = b""
        self.waiting = 0
        self.is_closed = False
        self.is_aborted = False
        self.is_reading = True

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


class TestedConnection:
    __test__ = False

    def __init__(self, server: ZooKeeperServer, address: str = "10.0.0.1") -> None:
        self.server = server
        self.connection = ServiceConnection(server)
        self.transport = RecordedTransport(address)
        self.connection.connection_made(self.transport)

    def send(self, frame: bytes) -> None:
        self.connection.data_received(i32(len(frame)) + frame)

    async def settled(self) -> None:
        """Everything that was submitted has been answered."""
        await self.server.thread.ask(lambda processor: "")

    async def connect(self, session_id: int = 0, password: bytes = bytes(16), timeout_ms: int = TIMEOUT_MS) -> None:
        self.send(i32(0) + i64(0) + i32(timeout_ms) + i64(session_id) + buf(password) + b"\0")
        await self.settled()

    @property
    def session_id(self) -> int:
        return int(struct.unpack_from(">q", self.transport.written, 12)[0])

    @property
    def password(self) -> bytes:
        return self.transport.written[24:40]

    def request(self, kind: int, body: bytes) -> None:
        self.send(i32(1) + i32(kind) + body)


async def running(directory: str = ":memory:", clock: ManualClock | None = None, **fields: object) -> ZooKeeperServer:
    """A server that listens on no port: connections are made by the test."""
    settings = make_settings({"directory": directory, "tick_time_ms": 500, **fields})
    server = ZooKeeperServer(settings, clock or ManualClock(1_000_000))
    for session in await server.thread.open():
        server.sessions.track(session)
    return server


@async_test
async def test_a_session_begins_and_outlives_its_connection() -> None:
    server = await running()
    first = TestedConnection(server)
    await first.connect()
    assert first.connection.session_id == first.session_id != 0
    first.request(CREATE, create("/e", flags=1))
    await first.settled()
    first.connection.connection_lost(None)
    second = TestedConnection(server)
    await second.connect(first.session_id, first.password)
    assert second.session_id == first.session_id
    second.request(EXISTS, path_and_watch("/e"))
    await second.settled()
    assert second.transport.written[-68 - 4 : -68] == i32(0)
    await server.stop()


@async_test
async def test_a_client_that_comes_back_ends_its_first_connection() -> None:
    server = await running()
    first, second, stranger = TestedConnection(server), TestedConnection(server), TestedConnection(server)
    await first.connect()
    await stranger.connect(first.session_id, bytes(16))
    assert stranger.session_id == 0
    assert stranger.transport.is_closed
    assert not first.transport.is_closed, "only the password ends it"
    await second.connect(first.session_id, first.password)
    assert first.transport.is_closed
    await server.stop()


@async_test
async def test_a_session_expires_with_its_nodes_and_its_connection() -> None:
    clock = ManualClock(1_000_000)
    server = await running(clock=clock)
    client = TestedConnection(server)
    await client.connect()
    client.request(CREATE, create("/e", flags=1))
    await client.settled()
    clock.advance(TIMEOUT_MS)
    server.expire()
    assert not client.transport.is_closed
    clock.advance(500)
    server.expire()
    assert await server.thread.ask(lambda processor: str(processor.tree.find("/e"))) == "None"
    assert client.transport.is_closed
    await server.stop()


@async_test
async def test_sessions_outlive_a_restart_of_the_service(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    server = await running(str(tmp_path), clock)
    client = TestedConnection(server)
    await client.connect()
    client.request(CREATE, create("/e", flags=1))
    await client.settled()
    await server.stop()
    clock.advance(1_000_000)
    server = await running(str(tmp_path), clock)
    again = TestedConnection(server)
    await again.connect(client.session_id, client.password)
    assert again.session_id == client.session_id
    clock.advance(TIMEOUT_MS + 500)
    server.expire()
    assert await server.thread.ask(lambda processor: str(processor.tree.find("/e"))) == "None"
    await server.stop()


@async_test
async def test_connections_are_limited_by_address_and_in_all() -> None:
    server = await running(max_client_connections=2, max_connections=3)
    first = [TestedConnection(server, "10.0.0.1") for _ in range(3)]
    assert [each.transport.is_closed for each in first] == [False, False, True]
    others = [TestedConnection(server, f"10.0.0.{number}") for number in (2, 3)]
    assert [each.transport.is_closed for each in others] == [False, True]
    first[2].connection.connection_lost(None)
    first[0].connection.connection_lost(None)
    assert not TestedConnection(server, "10.0.0.1").transport.is_closed
    await server.stop()


@async_test
async def test_a_connection_that_asks_for_no_session_is_closed() -> None:
    clock = ManualClock(1_000_000)
    server = await running(clock=clock)
    client = TestedConnection(server)
    clock.advance(SESSIONLESS_TIMEOUT_MS - 1)
    server.expire()
    assert not client.transport.is_closed
    clock.advance(1)
    server.expire()
    assert client.transport.is_closed
    await server.stop()


@async_test
async def test_a_connection_is_not_read_while_too_many_requests_wait() -> None:
    server = await running(outstanding_max=2)
    client = TestedConnection(server)
    await client.connect()
    for _ in range(5):
        client.request(EXISTS, path_and_watch("/"))
    assert not client.transport.is_reading
    assert server.outstanding == 2
    while server.outstanding:
        await client.settled()
    assert client.transport.is_reading
    assert server.stats.latency.count == 5
    await server.stop()


@async_test
async def test_a_start_that_fails(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    server = ZooKeeperServer(make_settings({"directory": str(blocked / "below")}), ManualClock(1_000_000))
    with pytest.raises(StartupError):
        await server.start()


@async_test
async def test_a_failure_of_the_database_ends_the_service() -> None:
    server = await running()
    client = TestedConnection(server)
    server.thread.submit(lambda processor: processor.tree.store.close())
    server.thread.submit(lambda processor: processor.tree.store.begin())
    await asyncio.wait({server.failed}, timeout=5)
    assert server.failed.exception() is not None
    assert client.transport.is_closed
    await server.stop()


@async_test
async def test_connections_end_with_the_server_also_while_they_are_accepted() -> None:
    async def start() -> tuple[int, Callable[[], Awaitable[None]]]:
        settings = make_settings({"directory": ":memory:", "host": "127.0.0.1", "port": 0})
        server = ZooKeeperServer(settings, ManualClock(1_000_000))
        await server.start()
        return server.port, server.stop

    await close_while_accepting(start)


@async_test
async def test_a_client_that_does_not_take_its_last_answers_is_dropped() -> None:
    clock = ManualClock(1_000_000)
    server = await running(clock=clock)
    client = TestedConnection(server)
    await client.connect()
    client.connection.close()
    clock.advance(CLOSE_TIMEOUT_MS - 1)
    client.connection.close()
    server.expire()
    assert not client.transport.is_aborted
    clock.advance(1)
    server.expire()
    assert client.transport.is_aborted
    await server.stop()


@async_test
async def test_no_connection_is_left_when_the_server_has_stopped() -> None:
    server = await running()
    client = TestedConnection(server)
    await client.connect()
    await server.stop()
    assert client.transport.is_aborted


@async_test
async def test_a_word_has_no_answer_when_the_database_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    server = await running()
    client = TestedConnection(server)

    def fail(processor: object) -> None:
        raise OSError("the disk")

    server.thread.submit(fail)
    with pytest.raises(OSError, match="the disk"):
        await server.failed
    late = TestedConnection(server)
    late.connection.data_received(b"srvr")
    await server.stop()
    assert late.transport.is_closed
    assert late.transport.written == client.transport.written == b""
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == [], "an error that nobody handles"
