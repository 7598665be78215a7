"""What metrics add to the processor time of a broker, by short turns of three brokers: one with metrics, two without.

The speed of a machine changes within seconds, so the brokers take turns of a fortieth of a second, and each turn with
metrics is compared with those without beside it. The two without metrics show the error of the method. They share a
core, and the client has another one.

Two processes of the same program differ by a percent, because their memory lies differently, so there are several
groups of processes, each started anew, and the brokers of a group have the same hash seed. The interval comes from a
bootstrap that draws groups of processes, and turns of each: it has both errors.
"""

from __future__ import annotations

import enum
import os
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.metrics_cost.loads import LOADS, SETTINGS, Load, prepare, run
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient

PROCESSES: Final = int(os.environ.get("ODRADEK_BENCH_GROUPS", "6"))
"""Groups of brokers. With 30 the interval is half as wide, and the benchmark takes a quarter of an hour."""

WITHOUT, ALSO_WITHOUT, WITH = range(3)
"""The brokers of a group."""

ORDERS: Final = tuple(permutations(range(3)))

DRAWS: Final = 1_000
CONFIDENCE: Final = 0.95

Ratios = list[list[float]]
"""The processor time of a turn divided by that of another broker: of each group of processes, its turns."""


class Rhythm(enum.Enum):
    """When a broker gets requests. The value: its turns of each kind of request, and how many come before them."""

    LOADED = (40, 8)
    """One kind after the other: each broker gets thousands of small requests, or hundreds of large ones, and waits for
    a twentieth of a second between its turns. That is shorter than the time after which metrics choose their samples
    anew.
    """

    BURSTS = (30, 2)
    """A turn of each kind, again and again: a broker gets a few hundred requests of a kind twice a second."""

    def __init__(self, turns: int, warm_up: int) -> None:
        self.turns = turns
        self.warm_up = warm_up

    def kinds(self, loads: Sequence[Load]) -> Iterator[tuple[int, Load]]:
        """The turns, each with its number."""
        numbers = range(-self.warm_up, self.turns)
        if self is Rhythm.LOADED:
            return ((number, load) for load in loads for number in numbers)
        return ((number, load) for number in numbers for load in loads)


class Found(NamedTuple):
    """Of a kind of request."""

    control: Ratios
    """Of the two brokers without metrics."""
    added: Ratios
    """Of the broker with metrics and the mean of the two without."""


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
    directory: Path, rhythm: Rhythm, *, loads: Sequence[Load] = LOADS, processes: int = PROCESSES
) -> Mapping[str, Found]:
    """The ratios of each kind of request."""
    ratios = {load.name: Found([], []) for load in loads}
    for number in range(processes):
        with _group(directory / str(number), loads, number) as sides:
            turns = _turns(sides, rhythm, loads)
        for name, found in turns.items():
            ratios[name].control.append([used[ALSO_WITHOUT] / used[WITHOUT] for used in found])
            ratios[name].added.append([2 * used[WITH] / (used[WITHOUT] + used[ALSO_WITHOUT]) for used in found])
    return ratios


@contextmanager
def _group(directory: Path, loads: Sequence[Load], number: int) -> Iterator[Mapping[int, Side]]:
    """The brokers of a group; `number` chooses their hash seed and the order in which they are started."""
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, cores)
        sides: dict[int, Side] = {}
        for side in ORDERS[number % len(ORDERS)]:
            settings = {"odradek.metrics.listener": str(free_port())} if side == WITH else {}
            broker = OdradekBroker(directory / str(side), {**SETTINGS, **settings})
            broker.prefix = ["env", f"PYTHONHASHSEED={number}"]
            os.sched_setaffinity(0, {max(cores)})  # the process that is started inherits it
            stack.enter_context(running(broker))
            client = stack.enter_context(RawClient(broker.host, broker.port))
            sides[side] = Side(broker, client, loads)
        os.sched_setaffinity(0, cores - {max(cores)} or cores)
        yield sides


def _turns(
    sides: Mapping[int, Side], rhythm: Rhythm, loads: Sequence[Load]
) -> Mapping[str, Sequence[Mapping[int, int]]]:
    """The processor time of each broker in each turn of each kind of request."""
    found: dict[str, list[Mapping[int, int]]] = {load.name: [] for load in loads}
    for number, load in rhythm.kinds(loads):
        used_ns = {side: sides[side].turn(load) for side in ORDERS[number % len(ORDERS)]}
        if number >= 0:
            found[load.name].append(used_ns)
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
