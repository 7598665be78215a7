"""Holding work down to a rate."""

from __future__ import annotations

import pytest

from odradek.storage.throttle import CHECK_INTERVAL_MS, Throttle
from odradek.timer.clock import ManualClock


def test_work_that_is_too_fast_sleeps_until_the_rate_is_right() -> None:
    clock, slept = ManualClock(), list[int]()
    throttle = Throttle(1000, clock, slept.append)
    throttle.maybe_throttle(500)
    clock.advance(CHECK_INTERVAL_MS)
    throttle.maybe_throttle(500)
    assert slept == []
    clock.advance(1)
    throttle.maybe_throttle(0)
    assert slept == [1000 - 301]


@pytest.mark.parametrize("rate", [1000.0, 1e300])
def test_work_within_the_rate_does_not_sleep(rate: float) -> None:
    clock, slept = ManualClock(), list[int]()
    throttle = Throttle(rate, clock, slept.append)
    for _ in range(5):
        clock.advance(CHECK_INTERVAL_MS + 1)
        throttle.maybe_throttle(301)
    assert slept == []


def test_each_period_counts_for_itself() -> None:
    clock, slept = ManualClock(), list[int]()
    throttle = Throttle(1000, clock, slept.append)
    clock.advance(400)
    throttle.maybe_throttle(400)
    clock.advance(400)
    throttle.maybe_throttle(800)
    assert slept == [400]
