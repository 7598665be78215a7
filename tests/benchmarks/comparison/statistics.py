"""Figures of turns, and what follows from those of two sides: medians, spread, and the ratio of each pair."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

Figures: TypeAlias = Mapping[tuple[str, str], float]
"""By name and unit. More is better for a unit that ends with "/s", as MB/s; less is better for all others."""

NEITHER_IS_BETTER: Final = ("% busy", "records/s sent", "% of the bytes kept")
"""Units of figures that explain others: of what a side has been given, or how busy it was."""


class Spread(NamedTuple):
    """Of the values of one figure."""

    median: float
    low: float
    lower_quartile: float
    upper_quartile: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Of one value or more. Quartiles lie between the smallest and the largest value (linear interpolation)."""
    if len(values) == 1:
        return Spread(*values * 5)
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(statistics.median(values), min(values), quartiles[0], quartiles[2], max(values))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of the two sides of a workload, by turn. `theirs` is empty if only one side was measured."""

    name: str
    unit: str
    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")

    @property
    def ratios(self) -> list[float]:
        """Ours divided by theirs, pair by pair. A pair with a figure that is too small to see (0) has none."""
        return [a / b for a, b in zip(self.ours, self.theirs, strict=False) if a > 0 and b > 0]

    @property
    def behind(self) -> float | None:
        """How many times worse ours is, by the median of the ratios: above 1 means behind. None where neither is."""
        if not self.ratios or self.unit in NEITHER_IS_BETTER:
            return None
        ratio = statistics.median(self.ratios)
        return 1 / ratio if self.more_is_better else ratio

    @property
    def pairs_behind(self) -> int:
        return sum(ratio < 1 if self.more_is_better else ratio > 1 for ratio in self.ratios)


def compared(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[Comparison]:
    """The figures of all turns, by figure. Each turn of a side has the same figures."""
    names = dict.fromkeys(name for turn in (*ours, *theirs) for name in turn)
    return [
        Comparison(*name, *([turn[name] for turn in turns if name in turn] for turns in (ours, theirs)))
        for name in names
    ]
