"""Limits the rate of work by sleeping.

Kafka: Throttler.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.clock import Clock

CHECK_INTERVAL_MS: Final = 300
"""The interval between two checks of the rate."""

LONGEST_SLEEP_MS: Final = 86_400_000
"""The limit of one sleep, for rates near 0, where Kafka's Throttler sleeps for ever."""


class Throttle:
    """Limits the amount per second. The unit is the caller's."""

    __slots__ = ("_clock", "_observed", "_period_start_ms", "_rate_per_second", "_sleep_ms")

    def __init__(self, rate_per_second: float, clock: Clock, sleep_ms: Callable[[int], None]) -> None:
        self._rate_per_second = rate_per_second
        self._clock = clock
        self._sleep_ms = sleep_ms
        self._observed = 0
        self._period_start_ms = clock.monotonic_ms()

    def maybe_throttle(self, amount: int) -> None:
        """Add an amount of work; sleep if the work so far was faster than the rate."""
        self._observed += amount
        elapsed_ms = self._clock.monotonic_ms() - self._period_start_ms
        if elapsed_ms <= CHECK_INTERVAL_MS or not self._observed:
            return
        # The config accepts any double: a negative rate, or NaN, means no limit.
        if self._rate_per_second >= 0:
            due_ms = self._observed * 1000 / self._rate_per_second if self._rate_per_second else math.inf
            if (sleep_ms := round(min(due_ms - elapsed_ms, LONGEST_SLEEP_MS))) > 0:
                self._sleep_ms(sleep_ms)
        self._period_start_ms = self._clock.monotonic_ms()
        self._observed = 0
