"""What a piece of work costs the brokers, and the figures that say so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side
from tests.benchmarks.measure import Usage, percentile


class Cost(NamedTuple):
    """Of a piece of work: processor time of the brokers, wall seconds, and what the work has returned."""

    usage: Usage
    elapsed_s: float
    returned: Any


def cost_of(side: Side, work: Callable[[], Any]) -> Cost:
    before, started = side.usage(), time.perf_counter()
    returned = work()
    elapsed_s = time.perf_counter() - started
    return Cost(side.usage() - before, elapsed_s, returned)


def bulk_figures(cost: Cost, size: int, elapsed_s: float | None = None) -> Figures:
    """Of work that moves `size` bytes. `elapsed_s`: where the client measures it."""
    gigabytes, used = size / 1e9, cost.usage
    return {
        ("processor time", "CPU s/GB"): used.total_s / gigabytes,
        ("  of it user", "CPU s/GB"): used.user_s / gigabytes,
        ("  of it kernel", "CPU s/GB"): used.system_s / gigabytes,
        ("throughput", "MB/s"): size / (elapsed_s or cost.elapsed_s) / 1e6,
    }


def latency_figures(latencies_s: Sequence[float], prefix: str = "") -> Figures:
    """p50, p99 and p99.9 of latencies in seconds, in any order."""
    ordered = sorted(latencies_s)
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    return {(f"{prefix}{name}", "ms"): percentile(ordered, share) * 1000 for name, share in shares.items()}
