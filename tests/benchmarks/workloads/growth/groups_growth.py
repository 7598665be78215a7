"""How cost grows with groups, 1 to 10,000: a commit of an offset, and a question for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.benchmarks.comparison.costs import Cost, cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.group_offsets import commit, find_coordinator, offsets_of
from tests.benchmarks.measure import percentile
from tests.support.wire.raw_client import RawClient

TOPIC: Final = "committed"
PARTITIONS: Final = 10
COUNTS: Final = (1, 10, 100, 1_000, 10_000)
REQUESTS: Final = 1_000


def prepare(count: int, sides: Sequence[Side]) -> None:
    """Groups that earlier workloads have made stay."""
    for side in sides:
        with RawClient(side.broker.host, side.broker.port) as client:
            if TOPIC not in side.memo:
                create_topic(side.broker, TOPIC, PARTITIONS)
                find_coordinator(client)
            for number in range(side.memo.get(TOPIC, 0), count):
                commit(client, f"group-{number}", TOPIC, PARTITIONS)
        side.memo[TOPIC] = max(count, side.memo.get(TOPIC, 0))


def drive(count: int, side: Side) -> Figures:
    requests = side.amount(REQUESTS, at_least=50)
    groups = [f"group-{number % count}" for number in range(requests)]
    with RawClient(side.broker.host, side.broker.port) as client:
        committing = cost_of(side, partial(commits, client, groups))
        asking = cost_of(side, partial(questions, client, groups))
    return {**_figures("a commit of 10 offsets", committing), **_figures("a question for them", asking)}


def _figures(name: str, cost: Cost) -> Figures:
    used = cost.usage.total_s / len(cost.returned) * 1e6
    return {(f"{name}, p50", "ms"): percentile(sorted(cost.returned), 0.5) * 1000, (name, "CPU µs"): used}


def commits(client: RawClient, groups: Sequence[str]) -> list[float]:
    """Seconds of each."""
    found = []
    for group in groups:
        started = time.perf_counter()
        commit(client, group, TOPIC, PARTITIONS)
        found.append(time.perf_counter() - started)
    return found


def questions(client: RawClient, groups: Sequence[str]) -> list[float]:
    """Seconds of each."""
    found = []
    for group in groups:
        started = time.perf_counter()
        assert offsets_of(client, [group]) == {group: PARTITIONS}
        found.append(time.perf_counter() - started)
    return found


WORKLOADS: Final = tuple(
    Workload(
        name=f"groups_growth/{count}",
        description=f"Commits of 10 offsets, and questions for them, one at a time, in turn of {count:,} groups",
        setup=ONE_NODE,
        prepare=partial(prepare, count),
        drive=partial(drive, count),
        main=count <= 1_000,
        series=("groups", float(count)),
    )
    for count in COUNTS
)
