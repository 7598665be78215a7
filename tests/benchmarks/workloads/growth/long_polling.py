"""Two hundred idle consumers, each with a Fetch every half a second that waits for records in vain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from odradek.protocol.api import ApiKey
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, frame_of
from tests.support.wire.requests import build

TOPIC: Final = "idle"
CONSUMERS: Final = 200
MAX_WAIT_MS: Final = 500
SETTLE_S: Final = 1
MEASURED_S: Final = 5
FETCH_VERSION: Final = 11


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        create_topic(side.broker, TOPIC, 1)


def drive(side: Side) -> Figures:
    return asyncio.run(wait_with(side))


async def wait_with(side: Side) -> Figures:
    frame, answered = fetch_frame(TOPIC, 0, MAX_WAIT_MS), 0

    async def consume() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(side.broker.host, side.broker.port)
        try:
            while True:
                writer.write(frame)
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                answered += 1
        finally:
            writer.close()

    consumers = [asyncio.create_task(consume()) for _ in range(CONSUMERS)]
    await asyncio.sleep(SETTLE_S)
    before, started, answered = side.usage(), time.perf_counter(), 0
    await asyncio.sleep(max(SETTLE_S, side.contenders.scale * MEASURED_S))
    used, elapsed_s = side.usage() - before, time.perf_counter() - started
    fetches = answered
    for consumer in consumers:
        consumer.cancel()
    results = await asyncio.gather(*consumers, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results), results
    return {
        ("broker", "% of a core"): used.total_s / elapsed_s * 100,
        ("broker", "CPU µs/fetch"): used.total_s / max(1, fetches) * 1e6,
    }


def fetch_frame(topic: str, offset: int, max_wait_ms: int, max_bytes: int = 1 << 20) -> bytes:
    """A Fetch request for partition 0, outside a session. The first batch is sent even beyond `max_bytes`."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    request = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    return frame_of(request, FETCH_VERSION)


WORKLOADS: Final = (
    Workload(
        name="long_polling",
        description=f"{CONSUMERS} consumers of an empty topic, each with a Fetch that waits {MAX_WAIT_MS} ms in vain",
        setup=ONE_NODE,
        prepare=prepare,
        drive=drive,
        warm_up=1,
    ),
)
