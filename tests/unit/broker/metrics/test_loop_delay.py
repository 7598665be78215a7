from __future__ import annotations

from odradek.broker.metrics.loop_delay import GENERATION_MS, IDLE_WINDOW_MS, TICK_MS, LoopDelay
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


def test_a_tick_that_runs_late_counts_its_delay() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    ticks: list[int] = []
    delay = LoopDelay(clock, timer, ticks.append)
    delay.start()
    for late_ms in (0, 7, 40):
        clock.advance(TICK_MS + late_ms)
        timer.advance()
    assert (delay.delay_ms.count, delay.delay_ms.maximum) == (3, 40)
    assert ticks == [TICK_MS, TICK_MS + 7, TICK_MS + 40]
    assert delay.delay_ms.quantiles()[0] == 7
    clock.advance(GENERATION_MS)
    timer.advance()
    assert delay.delay_ms.current == {}
    delay.stop()
    clock.advance(TICK_MS)
    timer.advance()
    assert delay.delay_ms.count == 4


def test_a_loop_that_does_not_compute_is_idle() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    ticks: list[int] = []
    delay = LoopDelay(clock, timer, ticks.append)
    delay.start()
    delay.idle_share = 0.0
    clock.advance(IDLE_WINDOW_MS)
    timer.advance()
    assert 0.9 < delay.idle_share <= 1  # the clock of the test runs ahead of the processor
