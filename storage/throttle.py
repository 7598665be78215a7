"""Holds work down to a rate by sleeping. Answers to Kafka's Throttler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.clock import Clock

CHECK_INTERVAL_MS: Final = 300
"""The rate is looked at when so much time has passed."""


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
        due_ms = self._observed / (self._rate_per_second / 1000)
        if (sleep_ms := round(due_ms - elapsed_ms)) > 0:
            self._sleep_ms(sleep_ms)
        self._period_start_ms = self._clock.monotonic_ms()
        self._observed = 0
