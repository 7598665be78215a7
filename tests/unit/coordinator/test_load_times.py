from __future__ import annotations

import math

from odradek.coordinator.load_times import LoadTimes
from odradek.timer.clock import ManualClock
from odradek.timer.sampled_rate import METRIC_WINDOW_MS, METRIC_WINDOWS


def test_the_longest_load_and_the_average_until_they_are_old() -> None:
    clock = ManualClock()
    times = LoadTimes(clock)
    assert math.isnan(times.maximum_ms)
    assert math.isnan(times.average_ms)
    for load_ms in (10, 50, 30):
        began_ms = times.now_ms()
        clock.advance(load_ms)
        times.loaded(began_ms)
    assert (times.maximum_ms, times.average_ms) == (50, 30)
    clock.advance(METRIC_WINDOW_MS)
    times.loaded(times.now_ms() - 5)
    assert times.maximum_ms == 50, "the window before counts, too"
    clock.advance(METRIC_WINDOW_MS)
    assert (times.maximum_ms, times.average_ms) == (5, 5)
    clock.advance(METRIC_WINDOWS * METRIC_WINDOW_MS)
    assert math.isnan(times.maximum_ms)
