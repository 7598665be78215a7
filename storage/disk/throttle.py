"""Holds work down to a rate by sleeping. Kafka: Throttler."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.clock import Clock

CHECK_INTERVAL_MS: Final = 300
"""The rate is looked at when so much time has passed."""

LONGEST_SLEEP_MS: Final = 86_400_000
"""With a rate of next to nothing; Kafka's sleeps for ever then."""


class Throttle:
    """Bounds what is done per second. The unit is the caller's."""

    __slots__ = ("_clock", "_observed", "_period_start_ms", "_rate_per_second", "_sleep_ms")

    def __init__(self, rate_per_second: float, clock: Clock, sleep_ms: Callable[[int], None]) -> None:
        self._rate_per_second = rate_per_second
        self._clock = clock
        self._sleep_ms = sleep_ms
        self._observed = 0
        self._period_start_ms = clock.monotonic_ms()

    def maybe_throttle(self, amount: int) -> None:
        """Note what was done, and sleep for as long as it should have taken."""
        self._observed += amount
        elapsed_ms = self._clock.monotonic_ms() - self._period_start_ms
        if elapsed_ms <= CHECK_INTERVAL_MS or not self._observed:
            return
        # The config takes every number there is; of those below 0, and of what is no number, nothing is held down.
        if self._rate_per_second >= 0:
            due_ms = self._observed * 1000 / self._rate_per_second if self._rate_per_second else math.inf
            if (sleep_ms := round(min(due_ms - elapsed_ms, LONGEST_SLEEP_MS))) > 0:
                self._sleep_ms(sleep_ms)
        self._period_start_ms = self._clock.monotonic_ms()
        self._observed = 0
