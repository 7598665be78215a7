"""Two hundred idle consumers, each with a Fetch every half a second that waits for records in vain."""

from __future__ import annotations

import asyncio
import time

from odradek.protocol.api import ApiKey
from tests.benchmarks.contenders import Contender, Contenders, create_topic, frame_of
from tests.benchmarks.measure import Table, usage_of
from tests.support.wire.requests import build

TOPIC = "idle"
CONSUMERS = 200
MAX_WAIT_MS = 500
WARM_UP_S = 5
MEASURED_S = 10
FETCH_VERSION = 11


def run(contenders: Contenders) -> None:
    table = Table(f"{CONSUMERS} consumers of an empty topic, max.wait {MAX_WAIT_MS} ms, for {MEASURED_S} s")
    with contenders.both("idle") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, 1)
        (our_cpu, our_rate), (their_cpu, their_rate) = (asyncio.run(wait_with(b)) for b in (odradek, apache))
    table.row("broker", "% of a core", our_cpu * 100, their_cpu * 100)
    table.row("fetches answered", "per s", our_rate, their_rate)
    table.row("broker", "CPU µs/fetch", our_cpu / our_rate * 1e6, their_cpu / their_rate * 1e6)


async def wait_with(broker: Contender) -> tuple[float, float]:
    """The share of a core that the broker took, and fetches per second."""
    frame, answered = fetch_frame(), 0

    async def consume() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(broker.host, broker.port)
        try:
            while True:
                writer.write(frame)
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                answered += 1
        finally:
            writer.close()

    consumers = [asyncio.create_task(consume()) for _ in range(CONSUMERS)]
    await asyncio.sleep(WARM_UP_S)
    before, started, answered = usage_of(broker.pid), time.perf_counter(), 0
    await asyncio.sleep(MEASURED_S)
    used, elapsed, rate = usage_of(broker.pid) - before, time.perf_counter() - started, answered / MEASURED_S
    for consumer in consumers:
        consumer.cancel()
    results = await asyncio.gather(*consumers, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results), results
    return used.total_s / elapsed, rate


def fetch_frame() -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    request = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[{"topic": TOPIC, "partitions": [partition]}],
    )
    return frame_of(request, FETCH_VERSION)
