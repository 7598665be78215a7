"""Runs workloads: both sides in turn, A B A B ..., so that a change of the machine's speed meets both."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import confluent_kafka

from tests.benchmarks.comparison.statistics import Comparison, Figures, compared
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import Contenders
from tests.support.wire.raw_client import ConnectionClosedError

FAILURES: Final = (
    AssertionError,
    ConnectionClosedError,
    OSError,
    EOFError,
    RuntimeError,
    LookupError,
    ValueError,
    confluent_kafka.KafkaException,
)
"""One of these in a workload ends the workload and not the run. An error of the load itself shows as one of them."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a workload has measured."""

    name: str
    description: str
    setup: str
    labels: Sequence[str]
    comparisons: Sequence[Comparison]
    series: tuple[str, float] | None = None
    duration_s: float = 0
    error: str = ""
    """Why it has no figures; empty if it has."""


@dataclass(slots=True)
class Runner:
    """Makes `pairs` pairs of each workload. `labels`: the sides to measure, all if it is empty."""

    contenders: Contenders
    pairs: int
    labels: Sequence[str] = ()
    show: Callable[[Result], object] = lambda result: None
    results: list[Result] = field(default_factory=list)

    def run(self, workloads: Sequence[Workload]) -> list[Result]:
        for setup, with_it in groupby(workloads, key=lambda workload: workload.setup):
            waiting = list(with_it)
            while waiting:
                self._run_with(setup, waiting)
        return self.results

    def _run_with(self, setup: Setup, waiting: list[Workload]) -> None:
        """Run these workloads with the same brokers, until all have run or one fails: the others get new brokers."""
        with ExitStack() as stack:
            chosen = [label for label in setup.labels if not self.labels or label in self.labels]
            sides: list[Side] = []
            while waiting:
                workload = waiting.pop(0)
                began = time.perf_counter()
                try:
                    if not sides:
                        sides += [stack.enter_context(setup.start(self.contenders, label)) for label in chosen]
                    comparisons, error = self._measure(workload, sides), ""
                except FAILURES as failure:
                    traceback.print_exc()
                    comparisons, error = [], f"{type(failure).__name__}: {failure}"[:300]
                result = Result(
                    workload.name,
                    workload.description,
                    setup.name,
                    chosen,
                    comparisons,
                    workload.series,
                    time.perf_counter() - began,
                    error,
                )
                self.results.append(result)
                self.show(result)
                if error:
                    return

    def _measure(self, workload: Workload, sides: Sequence[Side]) -> list[Comparison]:
        workload.prepare(sides)
        for _ in turns(workload, sides, workload.warm_up):
            pass
        found: list[list[Figures]] = [[] for _ in sides]
        for place, figures in turns(workload, sides, self.pairs):
            found[place].append(figures)
        return compared(found[0], found[1] if len(found) > 1 else [])


def turns(workload: Workload, sides: Sequence[Side], count: int) -> Iterator[tuple[int, Figures]]:
    """A B A B ..., `count` of each: the place of the side, and its figures."""
    for _ in range(count):
        for place, side in enumerate(sides):
            yield place, workload.drive(side)
