from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from odradek.timer.clock import AdjustableClock, Clock, ManualClock, SystemClock, local_time, sleep_ms


def test_system_clock_gives_whole_milliseconds_of_both_clocks() -> None:
    clock: Clock = SystemClock()
    wall_before, monotonic_before = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
    wall, monotonic = clock.time_ms(), clock.monotonic_ms()
    assert wall_before <= wall <= time.time_ns() // 1_000_000
    assert monotonic_before <= monotonic <= time.monotonic_ns() // 1_000_000


def test_manual_clock_moves_only_when_told() -> None:
    clock: Clock = ManualClock(1_700_000_000_000)
    assert (clock.time_ms(), clock.monotonic_ms()) == (1_700_000_000_000, 1_700_000_000_000)
    assert isinstance(clock, ManualClock)
    clock.advance(250)
    clock.advance(0)
    assert (clock.time_ms(), clock.monotonic_ms()) == (1_700_000_000_250, 1_700_000_000_250)


def test_setting_the_wall_clock_does_not_move_the_monotonic_one() -> None:
    clock = ManualClock(1_000_000, monotonic_ms=7)
    clock.set_time_ms(500)
    clock.advance(3)
    assert (clock.time_ms(), clock.monotonic_ms()) == (503, 10)


def test_manual_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="time does not go back"):
        ManualClock().advance(-1)


def test_an_adjustable_clock_is_ahead_of_the_machine_by_what_it_was_advanced() -> None:
    clock, system = AdjustableClock(), SystemClock()
    clock.advance(1_000_000)
    clock.advance(500_000)
    wall_before, monotonic_before = system.time_ms(), system.monotonic_ms()
    wall, monotonic = clock.time_ms() - 1_500_000, clock.monotonic_ms() - 1_500_000
    fine = clock.monotonic_ns() // 1_000_000 - 1_500_000
    assert wall_before <= wall <= system.time_ms()
    assert monotonic_before <= monotonic <= fine <= system.monotonic_ms()
    with pytest.raises(ValueError, match="-1"):
        clock.advance(-1)


def test_sleeping_lets_time_pass() -> None:
    clock = SystemClock()
    before = clock.monotonic_ms()
    sleep_ms(2)
    assert clock.monotonic_ms() - before >= 2


def test_local_time_is_that_of_the_time_zone_of_the_process() -> None:
    moment = datetime.fromtimestamp(1_700_000_000, UTC).astimezone()
    assert local_time(1_700_000_000_999)[:6] == moment.timetuple()[:6]
