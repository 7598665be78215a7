"""One record of 100 bytes per request, acks=all, the next one sent when the last one is answered.

The client is a plain socket with one prepared frame, so that the broker and the kernel are measured.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from odradek.protocol.api import ApiKey
from tests.benchmarks.comparison.costs import cost_of, latency_figures
from tests.benchmarks.comparison.setups import JUST_STARTED
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, frame_of
from tests.support.wire.requests import batch, build

TOPIC: Final = "latency"
VALUE_BYTES: Final = 100
PRODUCE_VERSION: Final = 9
REQUESTS: Final = 10_000
WARM_UPS: Final = {"fresh": 2, "warm": 30}
"""Turns that are not measured. Java compiles what runs often, and once more with what it has learned meanwhile."""


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            side.memo[TOPIC] = True
            create_topic(side.broker, TOPIC, 1)


def drive(side: Side) -> Figures:
    count = side.amount(REQUESTS, at_least=100)
    with socket.create_connection((side.broker.host, side.broker.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        cost = cost_of(side, partial(exchange, client, produce_frame(TOPIC), count))
    figures = latency_figures(cost.returned)
    return {**figures, ("broker", "CPU µs/request"): cost.usage.total_s / count * 1e6}


def exchange(client: socket.socket, frame: bytes, count: int) -> list[float]:
    """The latencies in seconds. All answers have the size of the first."""
    client.sendall(frame)
    size, buffer = len(client.recv(65_536)), bytearray(65_536)
    latencies = []
    for _ in range(count):
        started = time.perf_counter()
        client.sendall(frame)
        missing = size
        while missing:
            missing -= client.recv_into(buffer, missing)
        latencies.append(time.perf_counter() - started)
    return latencies


def produce_frame(topic: str, value: bytes = bytes(VALUE_BYTES)) -> bytes:
    """A Produce request with one record for partition 0."""
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": batch(value)}]}]
    return frame_of(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


WORKLOADS: Final = tuple(
    Workload(
        name=f"latency/{name}",
        description=f"One record of {VALUE_BYTES} B per request, one request after the other, acks=all, "
        f"after {warm_up} times {REQUESTS:,} requests",
        setup=JUST_STARTED,
        prepare=prepare,
        drive=drive,
        warm_up=warm_up,
    )
    for name, warm_up in WARM_UPS.items()
)
