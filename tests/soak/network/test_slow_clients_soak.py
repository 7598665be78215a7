"""Clients that are slow, silent or never read, by the thousand; other clients are served as before.

ODRADEK_SOAK_CLIENTS shortens the run: it is the number of idle clients, and the other counts follow it.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.soak

IDLE = int(os.environ.get("ODRADEK_SOAK_CLIENTS", "5000"))
TRICKLING = max(1, IDLE // 5)
READERS = max(1, IDLE // 50)
MAX_IDLE_S = 20
IDLE_TOLERANCE_S = 10
CALLS = 2_000
BACKLOG = 40
LOG_BYTES = 110_000_000
READER_MEMORY_BYTES = 200 << 20
PRODUCE_BYTES = 1_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    with running(OdradekBroker(tmp_path, {"connections.max.idle.ms": str(MAX_IDLE_S * 1000)})) as process:
        with RawClient(process.host, process.port) as client:
            topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
            client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5)
        yield process


def produce(value: bytes) -> object:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(value)}]}]
    return build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)


def latencies_ms(broker: OdradekBroker) -> list[float]:
    """What a client that behaves waits for, one record at a time."""
    request, waits = produce(bytes(PRODUCE_BYTES)), []
    with RawClient(broker.host, broker.port) as client:
        for _ in range(CALLS):
            started = time.perf_counter()
            client.call(request, 8)
            waits.append((time.perf_counter() - started) * 1000)
    return waits


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


@contextmanager
def trickling(broker: OdradekBroker, count: int) -> Iterator[list[socket.socket]]:
    """Connections that send one byte of a request every second."""
    frame = encode_request(RequestHeader(ApiKey.METADATA, 9, 1, "x" * 2_000), MetadataRequest(topics=[]))
    data = struct.pack(">i", len(frame)) + frame
    clients = connections(broker, count)
    stopping = threading.Event()

    def trickle() -> None:
        for byte in range(len(data)):
            for client in clients:
                client.send(data[byte : byte + 1])
            if stopping.wait(1):
                return

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    try:
        yield clients
    finally:
        stopping.set()
        thread.join(30)
        for client in clients:
            client.close()


def connections(broker: OdradekBroker, count: int) -> list[socket.socket]:
    """That many, opened no faster than the broker accepts them: `socket.listen.backlog.size` are 50."""
    process, clients = psutil.Process(broker.pid), []
    before = process.num_fds()
    while len(clients) < count:
        clients += [
            socket.create_connection((broker.host, broker.port)) for _ in range(min(BACKLOG, count - len(clients)))
        ]
        accepted = before + len(clients) - BACKLOG // 2  # connections of before may still be closing
        eventually(process.num_fds, accept=lambda count, accepted=accepted: count >= accepted)  # type: ignore[misc]
    return clients


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_slow_and_idle_clients_cost_others_nothing(broker: OdradekBroker) -> None:
    process = psutil.Process(broker.pid)
    latencies_ms(broker)
    alone = p99(latencies_ms(broker))
    descriptors = process.num_fds()
    with trickling(broker, TRICKLING) as slow:
        opened = time.monotonic()
        idle = connections(broker, IDLE)
        opened_s = time.monotonic() - opened
        beside = p99(latencies_ms(broker))
        print(f"p99 of a produce: alone {alone:.2f} ms, beside {IDLE} idle and {TRICKLING} slow ones {beside:.2f} ms")
        assert time.monotonic() - opened < MAX_IDLE_S, "the idle ones have to be there meanwhile"
        eventually(
            lambda: sum(map(is_open, idle)),
            accept=lambda count: count == 0,
            timeout_s=MAX_IDLE_S + IDLE_TOLERANCE_S + opened_s,
        )
        assert time.monotonic() - opened >= MAX_IDLE_S
        assert all(map(is_open, slow)), "whoever sends is not idle"
        for client in idle:
            client.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
    assert beside < max(2 * alone, 1.0)


def test_clients_that_never_read_their_fetch(broker: OdradekBroker) -> None:
    """Each asks for 100 MB and reads nothing."""
    with RawClient(broker.host, broker.port) as client:
        request = produce(bytes(900_000))
        for _ in range(LOG_BYTES // 900_000):
            client.call(request, 8)
    latencies_ms(broker)
    alone = p99(latencies_ms(broker))
    process = psutil.Process(broker.pid)
    before, descriptors = process.memory_info().rss, process.num_fds()
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000_000}
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=100_000_000,
        topics=[{"topic": "t", "partitions": [wanted]}],
    )
    readers = [RawClient(broker.host, broker.port) for _ in range(READERS)]
    for reader in readers:
        reader.send(fetch, 11)
    beside = p99(latencies_ms(broker))
    grown = process.memory_info().rss - before
    print(f"{READERS} readers: {grown >> 20} MB more, p99 of a produce {alone:.2f} ms, beside them {beside:.2f} ms")
    assert grown <= READER_MEMORY_BYTES
    assert beside < max(2 * alone, 1.0)
    for reader in readers:
        reader.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
