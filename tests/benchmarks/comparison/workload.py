"""What a workload is: a name, what it measures, the brokers that it needs, and a function that drives one side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar

from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.contenders import Contender, Contenders
from tests.benchmarks.measure import Usage, resident_mb, usage_of

T = TypeVar("T")

ODRADEK: Final = "Odradek"
APACHE: Final = "Apache"


@dataclass(slots=True)
class Side:
    """One of the two sides of a pair: its brokers, which all have the same clients."""

    label: str
    contenders: Contenders
    brokers: Sequence[Contender] = ()
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of librdkafka that reach the brokers in another way than by the first listener."""
    memo: dict[str, Any] = field(default_factory=dict)
    """What `prepare` leaves for `drive`."""

    numbers: Iterator[int] = field(default_factory=count)

    def new_topic(self, prefix: str) -> str:
        """A name that no topic of this side has had: a topic that is deleted is there for a while."""
        return f"{prefix}-{next(self.numbers)}"

    @property
    def broker(self) -> Contender:
        return self.brokers[0]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def librdkafka(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **self.client}

    def amount(self, full: int, at_least: int = 1) -> int:
        """So much work as this run is to have (`--scale`)."""
        return max(at_least, int(full * self.contenders.scale))

    def usage(self) -> Usage:
        """Processor time of the brokers alone, with their worker processes."""
        total = Usage(0, 0)
        for broker in self.brokers:
            used = usage_of(broker.pid)
            total = Usage(total.user_s + used.user_s, total.system_s + used.system_s)
        return total

    def resident_mb(self) -> float:
        return sum(resident_mb(broker.pid) for broker in self.brokers)


@dataclass(frozen=True, slots=True)
class Setup:
    """Which brokers the sides of a workload have. Workloads with the same setup share them."""

    name: str
    start: Callable[[Contenders, str], AbstractContextManager[Side]]
    """Makes the side with that label."""
    labels: Sequence[str] = (ODRADEK, APACHE)
    """Of the sides. The ratio is the first divided by the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One load that both sides get in turn."""

    name: str
    """`group/rest`, or the name of the group alone."""
    description: str
    setup: Setup
    drive: Callable[[Side], Figures]
    """Gives one side the load once."""
    prepare: Callable[[Sequence[Side]], object] = lambda sides: None
    """Before the first turn, for all sides at once; not measured."""
    warm_up: int = 2
    """Turns of each side that are not measured: for the compilers of the JVM, and for caches."""
    main: bool = True
    """Whether it runs by default. The others run with `--full`, or when they are named."""
    series: tuple[str, float] | None = None
    """For a plot of growth: what grows, and how much of it this workload has."""

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]
