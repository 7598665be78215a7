"""A distribution of the last minutes: counts of rounded values, in one generation a minute.

Apache Kafka keeps a sample of 1028 values, weighted to the last five minutes. Here every value counts, for five
minutes, and is kept with seven significant bits: exact up to 127, and then wrong by less than two per cent. So the
memory is bounded however the values vary.

Kafka: com.yammer.metrics.core.Histogram.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

GENERATIONS: Final = 5

SIGNIFICANT_BITS: Final = 7

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""The percentiles of Apache Kafka's histograms."""


class Histogram:
    """Counts values; `begin_generation` is called once a minute."""

    __slots__ = ("_generations", "count", "current", "maximum")

    def __init__(self) -> None:
        self.count = 0
        """All values ever."""
        self.maximum = 0
        self.current: dict[int, int] = {}
        """Rounded value -> number of values."""
        self._generations: deque[dict[int, int]] = deque([self.current], GENERATIONS)

    def update(self, value: int, times: int = 1) -> None:
        """Count a value, which is not negative, `times` times."""
        self.count += times
        self.maximum = max(self.maximum, value)
        rounded = value
        if value >> SIGNIFICANT_BITS:
            shift = value.bit_length() - SIGNIFICANT_BITS
            rounded = value >> shift << shift
        self.current[rounded] = self.current.get(rounded, 0) + times

    def begin_generation(self) -> None:
        """Drop the oldest minute."""
        self.current = {}
        self._generations.append(self.current)

    def values(self) -> dict[int, int]:
        """The rounded values of the last minutes, and how often there was each."""
        counts: dict[int, int] = {}
        for generation in self._generations:
            for value, count in generation.items():
                counts[value] = counts.get(value, 0) + count
        return counts

    def quantiles(self) -> list[int]:
        """The values of `QUANTILES` over the last minutes; 0 without values."""
        counts = self.values()
        total = sum(counts.values())
        if not total:
            return [0] * len(QUANTILES)
        found: list[int] = []
        seen = 0
        for value in sorted(counts):
            seen += counts[value]
            while len(found) < len(QUANTILES) and seen >= QUANTILES[len(found)] * total:
                found.append(value)
        return found


def sum_of(histograms: Iterable[Histogram]) -> Histogram:
    """One histogram of the values of several."""
    total = Histogram()
    for histogram in histograms:
        for value, count in histogram.values().items():
            total.update(value, count)
        total.count += histogram.count - sum(histogram.values().values())
        total.maximum = max(total.maximum, histogram.maximum)
    return total
