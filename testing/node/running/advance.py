"""Moves the time of a broker forward: what is due on the way happens now, in the order of the deadlines.

The clock stands at the deadline of a task when the task runs, and the work that it begins is done before the next task.
Work that recurs is the exception, because a week has 40,000 rounds of fifteen seconds: in a long advance the rounds are
further apart, so that there are about `ROUNDS_MAX` of each kind. At the end there is one more round of each: retention
and the other periodic checks have seen the new time, whatever their intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.testing.node.running.activity import Activity
    from odradek.timer.clock import AdjustableClock
    from odradek.timer.system_timer import SystemTimer

ROUNDS_MAX: Final = 16
"""How often work recurs in one advance."""

ADVANCE_MS_MAX: Final = 100 * 365 * 86_400_000
"""A hundred years: timestamps must stay far from the end of 64 bits."""


async def advance(clock: AdjustableClock, timer: SystemTimer, activity: Activity, ms: int) -> None:
    """Let `ms` milliseconds pass; returns when all work that was due has been done.

    Raises: ValueError for a negative time or more than a hundred years.
    """
    if not 0 <= ms <= ADVANCE_MS_MAX:
        raise ValueError(f"a clock is advanced by 0 to {ADVANCE_MS_MAX} ms, not by {ms} ms")
    end_ms = clock.monotonic_ms() + ms
    apart_ms = ms // ROUNDS_MAX
    timer.stretch_ms = lambda interval_ms: max(interval_ms, apart_ms)
    try:
        await _run_until(clock, timer, activity, end_ms)
    finally:
        timer.stretch_ms = None
    for task in [task for wheel in timer.inspect() for bucket in wheel.buckets.values() for task in bucket]:
        if task.recurs:
            task.delay_ms = 0
            timer.add(task)
    await _run_until(clock, timer, activity, max(end_ms, clock.monotonic_ms()))  # real time has passed, too


async def _run_until(clock: AdjustableClock, timer: SystemTimer, activity: Activity, end_ms: int) -> None:
    """Run what is due until the monotonic time `end_ms`, and what follows from it."""
    await activity.settle()
    while (deadline_ms := timer.next_deadline_ms()) is not None and deadline_ms <= end_ms:
        clock.advance(max(0, deadline_ms - clock.monotonic_ms()))
        timer.advance()
        await activity.settle()
    clock.advance(max(0, end_ms - clock.monotonic_ms()))
