from __future__ import annotations

from odradek.broker.zookeeper.connection import WAITING_BYTES_MAX, Latency
from tests.support.async_test import async_test
from tests.support.wire.zookeeper_script import buf, create, i32, i64, path_and_watch
from tests.unit.broker.zookeeper.test_server import CREATE, EXISTS, TestedConnection, running


@async_test
async def test_frames_may_come_in_pieces() -> None:
    server = await running()
    client = TestedConnection(server)
    frame = i32(0) + i64(0) + i32(4000) + i64(0) + buf(bytes(16)) + b"\0"
    for byte in i32(len(frame)) + frame:
        client.connection.data_received(bytes([byte]))
    await client.settled()
    assert client.session_id != 0
    await server.stop()


@async_test
async def test_time_outs_are_negotiated_and_old_clients_get_no_flag() -> None:
    server = await running()
    for asked, given in ((1, 1000), (3000, 3000), (10_000_000, 10_000)):
        client = TestedConnection(server)
        await client.connect(timeout_ms=asked)
        assert client.transport.written[8:12] == i32(given)
        assert len(client.transport.written) == 41
    old = TestedConnection(server)
    old.send(i32(0) + i64(0) + i32(4000) + i64(0) + buf(bytes(16)))
    await old.settled()
    assert len(old.transport.written) == 40
    await server.stop()


@async_test
async def test_requests_wait_for_the_session() -> None:
    server = await running()
    client = TestedConnection(server)
    client.send(i32(0) + i64(0) + i32(4000) + i64(0) + buf(bytes(16)) + b"\0")
    client.request(CREATE, create("/a"))
    assert not client.transport.is_reading
    assert server.outstanding == 0
    await client.settled()
    assert client.transport.is_reading
    await client.settled()
    assert await server.thread.ask(lambda processor: str(processor.tree.find("/a") is not None)) == "True"
    await server.stop()


@async_test
async def test_junk_closes_one_connection() -> None:
    server = await running(max_buffer=1000)
    good = TestedConnection(server)
    await good.connect()
    for junk in (i32(1001), i32(-1), i32(4) + b"junk", i32(0)):
        bad = TestedConnection(server)
        bad.connection.data_received(junk)
        assert bad.transport.is_closed
        assert bad.transport.written == b""
    ahead = TestedConnection(server)
    ahead.send(i32(0) + i64(1 << 40) + i32(4000) + i64(0) + buf(bytes(16)) + b"\0")
    assert ahead.transport.is_closed
    long = TestedConnection(server)
    await long.connect()
    long.connection.data_received(i32(1001))
    assert long.transport.is_closed
    assert not good.transport.is_closed
    good.connection.data_received(i32(1000) + bytes(999))
    assert not good.transport.is_closed
    await server.stop()


@async_test
async def test_a_client_that_does_not_read_is_not_read_and_then_closed() -> None:
    server = await running()
    client = TestedConnection(server)
    await client.connect()
    client.connection.pause_writing()
    client.request(EXISTS, path_and_watch("/"))
    assert not client.transport.is_reading
    assert server.outstanding == 0
    client.connection.resume_writing()
    assert server.outstanding == 1
    await client.settled()
    client.transport.waiting = WAITING_BYTES_MAX
    client.connection.send(b"x")
    assert not client.transport.is_closed
    client.transport.waiting += 1
    client.connection.send(b"x")
    assert client.transport.is_closed
    await server.stop()


def test_latencies() -> None:
    latency = Latency()
    assert latency.average_ms == 0
    for ms in (4, 2, 6):
        latency.add(ms)
    assert (latency.least_ms, latency.average_ms, latency.most_ms, latency.last_ms) == (2, 4, 6, 6)
