"""One to five thousand connections: how long until each has a first answer, and what a request of each costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.benchmarks.clients.connections import connections, latencies
from tests.benchmarks.comparison.costs import latency_figures
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.workloads.records.latency import produce_frame

TOPIC: Final = "connections"
COUNTS: Final = (1, 10, 100, 1_000, 5_000)
REQUESTS: Final = 5_000
AT_ONCE: Final = 10


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            side.memo[TOPIC] = produce_frame(TOPIC)
            create_topic(side.broker, TOPIC, 1)


def drive(count: int, side: Side) -> Figures:
    return asyncio.run(_drive(count, side))


async def _drive(count: int, side: Side) -> Figures:
    requests, frame = max(count, side.amount(REQUESTS)), side.memo[TOPIC]
    at_first, started = side.usage(), time.perf_counter()
    async with connections(side.broker.host, side.broker.port, count) as made:
        opened_s = time.perf_counter() - started
        before, started = side.usage(), time.perf_counter()
        found = await latencies(made, frame, requests, AT_ONCE)
        elapsed_s, used = time.perf_counter() - started, side.usage() - before
        figures = {
            ("each has an answer after", "s"): opened_s,
            ("opening", "CPU µs/connection"): (before - at_first).total_s / count * 1e6,
            ("requests", "requests/s"): requests / elapsed_s,
            ("a request", "CPU µs"): used.total_s / requests * 1e6,
            ("resident then", "MB"): side.resident_mb(),
        }
        return {**figures, **latency_figures(found)}


WORKLOADS: Final = tuple(
    Workload(
        name=f"connections/{count}",
        description=f"One-record Produce requests over {count:,} connections in turn, {min(AT_ONCE, count)} at a time",
        setup=ONE_NODE,
        prepare=prepare,
        drive=partial(drive, count),
        warm_up=1,
        series=("connections", float(count)),
    )
    for count in COUNTS
)
