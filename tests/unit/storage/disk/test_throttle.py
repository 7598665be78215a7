"""Limiting the rate of work."""

from __future__ import annotations

import pytest

from odradek.storage.disk.throttle import CHECK_INTERVAL_MS, LONGEST_SLEEP_MS, Throttle
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


@pytest.mark.parametrize(
    ("rate", "slept_ms"),
    [
        (float("nan"), []),
        (-1.0, []),
        (float("-inf"), []),
        (float("inf"), []),
        (0.0, [LONGEST_SLEEP_MS]),
        (5e-324, [LONGEST_SLEEP_MS]),
    ],
)
def test_every_number_that_the_config_takes_is_a_rate(rate: float, slept_ms: list[int]) -> None:
    clock, slept = ManualClock(), list[int]()
    throttle = Throttle(rate, clock, slept.append)
    clock.advance(CHECK_INTERVAL_MS + 1)
    throttle.maybe_throttle(1)
    assert slept == slept_ms
