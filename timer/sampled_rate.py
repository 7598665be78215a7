"""Rates over a few windows of time, compared with a bound: the arithmetic of all quotas that count amounts.

Amounts are added up in windows of `window_ms`. A rate is the sum of the windows that are not obsolete, divided by the
time since the oldest of them began. A window is obsolete when its last event is `window_count` windows old.

The caller passes monotonic times in milliseconds, so nothing here reads a clock.

Kafka: SampledStat, WindowedSum, Rate, SimpleRate, Avg, Max, QuotaUtils.throttleTime.
"""

from __future__ import annotations

import math
from typing import Final

METRIC_WINDOWS: Final = 2
METRIC_WINDOW_MS: Final = 30_000
"""The defaults of metrics.num.samples and metrics.sample.window.ms."""

_LONG_MAX = (1 << 63) - 1


class _Sample:
    """The sum and the number of amounts in one window, with the times of its start and of its last event."""

    __slots__ = ("amount", "count", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.amount = 0.0
        self.count = 0
        self.start_ms = now_ms
        self.last_ms = now_ms


class _SampledStat:
    """The windows. Kafka: SampledStat."""

    __slots__ = ("_current", "_samples", "_window_count", "_window_ms")

    def __init__(self, *, window_count: int = 11, window_ms: int = 1_000) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Add `amount`, which may be negative, to the current window."""
        sample = self._sample(now_ms)
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.amount += amount
        sample.count += 1
        sample.last_ms = now_ms

    def _elapsed_ms(self, now_ms: int) -> int:
        """The time since the oldest window that is not obsolete began. An obsolete one begins again now, and is empty.

        Kafka: SampledStat.purgeObsoleteSamples, SampledStat.oldest.
        """
        self._sample(now_ms)
        expire_age_ms = self._window_count * self._window_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expire_age_ms:
                sample.reset(now_ms)
            elif sample.start_ms < oldest_ms:
                oldest_ms = sample.start_ms
        return now_ms - oldest_ms

    def _sample(self, now_ms: int) -> _Sample:
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        return self._samples[self._current]

    def _advance(self, now_ms: int) -> _Sample:
        """Begin the next window. `window_count + 1` samples are kept: the oldest may overlap the measured time."""
        self._current = (self._current + 1) % (self._window_count + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]


class Rate(_SampledStat):
    """Units per second. At least `window_count - 1` whole windows count, also when fewer have passed.

    So the first amount of a client is no peak that throttles it: of eleven windows, ten count as passed.
    """

    __slots__ = ()

    def measure(self, now_ms: int) -> float:
        """The rate in units per second."""
        window_ms = self.window_size_ms(now_ms)
        return sum(sample.amount for sample in self._samples) / (window_ms / 1_000)

    def window_size_ms(self, now_ms: int) -> int:
        """The time that `measure` divides by; at least 1 ms."""
        elapsed_ms = self._elapsed_ms(now_ms)
        missing = self._window_count - 1 - elapsed_ms // self._window_ms
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)


class SimpleRate(Rate):
    """Units per second since the oldest window began, or over one window if that is longer."""

    __slots__ = ()

    def window_size_ms(self, now_ms: int) -> int:
        return max(self._elapsed_ms(now_ms), self._window_ms)


class Average(_SampledStat):
    """The mean of the amounts in the windows. Kafka: Avg."""

    __slots__ = ()

    def measure(self, now_ms: int) -> float:
        """The mean; NaN without amounts."""
        self._elapsed_ms(now_ms)
        count = sum(sample.count for sample in self._samples)
        return sum(sample.amount for sample in self._samples) / count if count else math.nan


class Maximum(_SampledStat):
    """The largest of the amounts in the windows, none of which is negative. Kafka: Max."""

    __slots__ = ()

    def record(self, amount: float, now_ms: int) -> None:
        """Count `amount` in the current window."""
        largest = self._sample(now_ms).amount
        if now_ms - self._sample(now_ms).start_ms >= self._window_ms:
            largest = 0.0
        super().record(max(0.0, amount - largest), now_ms)

    def measure(self, now_ms: int) -> float:
        """The largest; NaN without amounts."""
        self._elapsed_ms(now_ms)
        return max((sample.amount for sample in self._samples if sample.count), default=math.nan)


def throttle_time_ms(value: float, bound: float, window_size_ms: int) -> int:
    """The time after which a rate of `value` over `window_size_ms` is `bound`, if nothing more is recorded."""
    excess = value - bound
    ratio = excess / bound if bound else math.copysign(math.inf, excess) * math.copysign(1, bound)
    return java_round(ratio * window_size_ms)


def java_round(value: float) -> int:
    """Round half up, within 64 bits. Kafka: Math.round."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return _LONG_MAX if value > 0 else -_LONG_MAX - 1
    return max(min(math.floor(value + 0.5), _LONG_MAX), -_LONG_MAX - 1)


def as_int(value: int) -> int:
    """The lower 32 bits with their sign, as Java turns a long into an int.

    So a quota of 0, whose throttle time is infinite, becomes -1: Apache Kafka does not throttle it.
    """
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
