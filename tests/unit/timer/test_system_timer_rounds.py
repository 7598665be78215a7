from __future__ import annotations

from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


def test_rounds_come_at_their_interval_unless_they_are_stretched() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    task = timer.schedule_round(100, lambda: None)
    assert task.recurs
    assert task.expiration_ms == 100
    timer.stretch_ms = lambda interval_ms: 3 * interval_ms
    assert timer.schedule_round(100, lambda: None).expiration_ms == 300
    assert timer.schedule(100, lambda: None).expiration_ms == 100
