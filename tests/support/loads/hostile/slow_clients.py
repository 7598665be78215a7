"""Clients that are slow or silent, in any count, and what a client that behaves waits for beside them."""

from __future__ import annotations

import socket
import ssl
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

IDLE_TOLERANCE_S: Final = 10
CALLS: Final = 2_000
BACKLOG: Final = 40
PRODUCE_BYTES: Final = 1_000
STORED_BYTES: Final = 900_000
READER_BYTES: Final = 200 << 20
"""What a broker may need more for all clients that do not read."""


def produce(value: bytes) -> Request:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(value)}]}]
    return build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)


def latencies_ms(broker: OdradekBroker, calls: int = CALLS) -> list[float]:
    """What a client that behaves waits for, one record at a time."""
    request, waits = produce(bytes(PRODUCE_BYTES)), []
    with RawClient(broker.host, broker.port) as client:
        for _ in range(calls):
            started = time.perf_counter()
            client.call(request, 8)
            waits.append((time.perf_counter() - started) * 1000)
    return waits


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


@contextmanager
def trickling(
    broker: OdradekBroker, count: int, port: int, tls: ssl.SSLContext | None = None
) -> Iterator[list[socket.socket]]:
    """Connections that send one byte of a request every second."""
    frame = encode_request(RequestHeader(ApiKey.METADATA, 9, 1, "x" * 2_000), MetadataRequest(topics=[]))
    data = struct.pack(">i", len(frame)) + frame
    clients = connections(broker, count, port, tls)
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


def connections(broker: OdradekBroker, count: int, port: int, tls: ssl.SSLContext | None = None) -> list[socket.socket]:
    """That many, opened no faster than the broker accepts them: `socket.listen.backlog.size` are 50.

    With `tls` a connection has made its handshake.
    """
    process = psutil.Process(broker.pid)
    clients: list[socket.socket] = []
    before = process.num_fds()
    while len(clients) < count:
        some = [socket.create_connection((broker.host, port)) for _ in range(min(BACKLOG, count - len(clients)))]
        clients += some if tls is None else [tls.wrap_socket(client, server_hostname="localhost") for client in some]
        accepted = before + len(clients) - BACKLOG // 2  # connections of before may still be closing
        eventually(process.num_fds, accept=lambda count, accepted=accepted: count >= accepted)  # type: ignore[misc]
    return clients


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def slow_and_idle(
    broker: OdradekBroker,
    *,
    idle: int,
    slow: int,
    max_idle_s: float,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    calls: int = CALLS,
) -> tuple[float, float]:
    """Idle connections are closed after `max_idle_s` seconds, slow ones stay. `port`: of another listener for both.
    `tls`: it has TLS, and both make the handshake. `calls`: produced records of a measurement, all of them before the
    idle ones are closed.

    Returns the p99 of a produce in ms, alone and beside them.
    """
    process = psutil.Process(broker.pid)
    latencies_ms(broker, calls)
    alone = p99(latencies_ms(broker, calls))
    descriptors = process.num_fds()
    with trickling(broker, slow, port or broker.port, tls) as senders:
        opened = time.monotonic()
        silent = connections(broker, idle, port or broker.port, tls)
        opened_s = time.monotonic() - opened
        beside = p99(latencies_ms(broker, calls))
        print(f"p99 of a produce: alone {alone:.2f} ms, beside {idle} idle and {slow} slow ones {beside:.2f} ms")
        assert time.monotonic() - opened < max_idle_s, "the idle ones have to be there meanwhile"
        eventually(
            lambda: sum(map(is_open, silent)),
            accept=lambda count: count == 0,
            timeout_s=max_idle_s + IDLE_TOLERANCE_S + opened_s,
        )
        assert time.monotonic() - opened >= max_idle_s
        assert all(map(is_open, senders)), "one that sends is not idle"
        for client in silent:
            client.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
    return alone, beside


def never_read(
    broker: OdradekBroker,
    *,
    readers: int,
    log_bytes: int,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    calls: int = CALLS,
) -> tuple[float, float]:
    """So many clients ask for the whole log of so many bytes, which is in the topic `t`, and read nothing.

    Returns the p99 of a produce in ms, alone and beside them. `port`, `tls`, `calls`: see `slow_and_idle`.
    """
    with RawClient(broker.host, broker.port) as client:
        request = produce(bytes(STORED_BYTES))
        for _ in range(log_bytes // STORED_BYTES):
            client.call(request, 8)
    latencies_ms(broker, calls)
    alone = p99(latencies_ms(broker, calls))
    process = psutil.Process(broker.pid)
    before, descriptors = process.memory_info().rss, process.num_fds()
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": log_bytes}
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=log_bytes,
        topics=[{"topic": "t", "partitions": [wanted]}],
    )
    clients = [RawClient(broker.host, port or broker.port, tls=tls) for _ in range(readers)]
    for reader in clients:
        reader.send(fetch, 11)
    beside = p99(latencies_ms(broker, calls))
    grown = process.memory_info().rss - before
    print(f"{readers} readers: {grown >> 20} MB more, p99 of a produce {alone:.2f} ms, beside them {beside:.2f} ms")
    assert grown <= READER_BYTES
    for reader in clients:
        reader.close()
    eventually(process.num_fds, accept=lambda count: count <= descriptors + 1, timeout_s=60)
    return alone, beside
