"""One record of 100 bytes per request, acks=all, the next one sent when the last one is answered.

The client is a plain socket with one prepared frame, so that the broker and the kernel are measured.
"""

from __future__ import annotations

import socket
import time

from odradek.protocol.api import ApiKey
from tests.benchmarks.contenders import Contender, Contenders, create_topic, frame_of
from tests.benchmarks.measure import Table, percentile, usage_of
from tests.support.wire.requests import batch, build

TOPIC = "latency"
VALUE_BYTES = 100
PRODUCE_VERSION = 9
MEASURED = 10_000
WARM_UP = 20_000
"""Enough records for Apache's compilers to finish."""


def run(contenders: Contenders) -> None:
    table = Table(f"One record per request, {MEASURED:,} requests one after the other")
    with contenders.both("latency") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, 1)
        exchange(odradek, WARM_UP // 10)
        exchange(apache, WARM_UP)
        ours, our_cpu = exchange(odradek, MEASURED)
        theirs, their_cpu = exchange(apache, MEASURED)
    for share, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")):
        table.row(f"latency {name}", "ms", percentile(ours, share) * 1000, percentile(theirs, share) * 1000)
    table.row("broker", "CPU µs/request", our_cpu / MEASURED * 1e6, their_cpu / MEASURED * 1e6)


def exchange(broker: Contender, count: int) -> tuple[list[float], float]:
    """The latencies in seconds, sorted, and the broker's processor seconds."""
    frame = produce_frame()
    latencies = []
    with socket.create_connection((broker.host, broker.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(frame)
        answer = client.recv(65_536)
        size, buffer = len(answer), bytearray(65_536)
        before = usage_of(broker.pid)
        for _ in range(count):
            started = time.perf_counter()
            client.sendall(frame)
            missing = size
            while missing:
                missing -= client.recv_into(buffer, missing)
            latencies.append(time.perf_counter() - started)
    return sorted(latencies), (usage_of(broker.pid) - before).total_s


def produce_frame() -> bytes:
    partition = {"index": 0, "records": batch(bytes(VALUE_BYTES))}
    topics = [{"name": TOPIC, "partition_data": [partition]}]
    return frame_of(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)
