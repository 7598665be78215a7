"""What metrics add to the processor time of a broker, by short turns of two brokers: one with metrics, one without.

The speed of a machine changes within seconds, so the brokers take turns of a fortieth of a second, and each turn is
compared with the one beside it. Two processes of the same program differ by a percent, because their memory lies
differently, so there are several pairs of processes, each started anew. The interval comes from a bootstrap that draws
pairs of processes, and turns of each: it has both errors.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.metrics_cost.loads import LOADS, SETTINGS, Load, prepare, run
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient

PROCESSES: Final = 6
"""Pairs of brokers."""

TURNS: Final = 100
"""Of each kind of request and pair of brokers."""

DRAWS: Final = 1_000
CONFIDENCE: Final = 0.95

Ratios = list[list[float]]
"""With metrics divided by without: of each pair of processes, its turns."""


class Interval(NamedTuple):
    """Of the median ratio."""

    median: float
    low: float
    high: float


class Side:
    """One broker, with a connection and the bytes of each kind of request."""

    def __init__(self, broker: OdradekBroker, client: RawClient, loads: Sequence[Load]) -> None:
        self._broker = broker
        self._client = client
        prepare(client)
        self._frames = {load.name: load.frame(client) for load in loads}

    def turn(self, load: Load) -> int:
        """The processor time of one turn, in ns."""
        before_ns = processor_ns(self._broker.pid)
        run(self._client, self._frames[load.name], load.requests)
        return processor_ns(self._broker.pid) - before_ns


def processor_ns(pid: int) -> int:
    """Of all threads of a process, user and system. `psutil` has it in steps of 10 ms, which is too coarse."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def measured(
    directory: Path, *, loads: Sequence[Load] = LOADS, processes: int = PROCESSES, turns: int = TURNS, on: bool = True
) -> Mapping[str, Ratios]:
    """The ratios of each kind of request. `on=False`: both brokers are without metrics, for the error of the method."""
    ratios: dict[str, Ratios] = {load.name: [] for load in loads}
    for number in range(processes):
        of_pair = _of_pair(directory / str(number), loads, turns, on=on, first=number % 2)
        for name, found in of_pair.items():
            ratios[name].append(found)
    return ratios


def _of_pair(directory: Path, loads: Sequence[Load], turns: int, *, on: bool, first: int) -> Mapping[str, list[float]]:
    """`first`: the side that is started first, 0 the one without metrics."""
    with ExitStack() as stack:
        sides: dict[int, Side] = {}
        for side in (first, 1 - first):
            settings = {"odradek.metrics.listener": str(free_port())} if side and on else {}
            broker = stack.enter_context(running(OdradekBroker(directory / str(side), {**SETTINGS, **settings})))
            client = stack.enter_context(RawClient(broker.host, broker.port))
            sides[side] = Side(broker, client, loads)
        for load in loads:  # the first turn loads modules and fills caches
            for side in sides.values():
                side.turn(load)
        found: dict[str, list[float]] = {load.name: [] for load in loads}
        for turn in range(turns):
            for load in loads:
                order = (0, 1) if turn % 2 else (1, 0)
                used_ns = {side: sides[side].turn(load) for side in order}
                found[load.name].append(used_ns[1] / used_ns[0])
        return found


def interval(ratios: Ratios, draws: int = DRAWS, seed: int = 1) -> Interval:
    """The median of all turns, and where it lies with `CONFIDENCE`."""
    rng = random.Random(seed)
    medians = sorted(
        statistics.median(
            ratio for pair in rng.choices(ratios, k=len(ratios)) for ratio in rng.choices(pair, k=len(pair))
        )
        for _ in range(draws)
    )
    tail = int(draws * (1 - CONFIDENCE) / 2)
    return Interval(statistics.median(ratio for pair in ratios for ratio in pair), medians[tail], medians[-1 - tail])


def percent(ratio: float) -> str:
    """What the ratio is above 1."""
    return f"{(ratio - 1) * 100:+.1f} %"
