"""Drives the timer from the event loop: the only place of the broker that sleeps.

One `call_later` is armed for the timer's next deadline, and armed again when an earlier one appears. If the task of
that deadline is cancelled, the handle stays armed: most tasks are cancelled, and arming again costs more than one early
wake-up, which does no harm (the timer runs what is due by its clock and returns the next deadline).

A wake-up works for `ADVANCE_BUDGET_MS` and then lets the loop run before it goes on, so that a hundred thousand
time-outs in the same millisecond do not keep the sockets waiting.

Kafka: DelayedOperationPurgatory.ExpiredOperationReaper, SystemTimerReaper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from odradek.timer.clock import Clock
from odradek.timer.system_timer import SystemTimer

ADVANCE_BUDGET_MS = 10
"""A wake-up begins no task after this time. Every callback of the loop, its last task included, takes under 50 ms."""

LONGEST_SLEEP_MS = 3_600_000
"""An hour. Event loops limit the delay (asyncio to a day); one wake-up an hour costs nothing."""


class Handle(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The used part of an asyncio loop."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle: ...


class Ticker:
    """Calls `timer.advance` when it is time, from `start` to `stop`."""

    __slots__ = ("_armed_for_ms", "_clock", "_handle", "_loop", "_timer")

    def __init__(self, loop: Loop, clock: Clock, timer: SystemTimer) -> None:
        self._loop = loop
        self._clock = clock
        self._timer = timer
        self._handle: Handle | None = None
        self._armed_for_ms = 0

    def start(self) -> None:
        self._timer.on_earlier_deadline = self._arm
        self._arm()

    def stop(self) -> None:
        """Stop waking up. Tasks stay in the timer; `start` runs them later."""
        self._timer.on_earlier_deadline = None
        self._disarm()

    def clock_moved(self) -> None:
        """The clock was set forward: what waits is due earlier than the loop would wake up for it."""
        self._disarm()
        if self._timer.on_earlier_deadline is not None:
            self._arm()

    def _arm(self) -> None:
        deadline_ms = self._timer.next_deadline_ms()
        if deadline_ms is None:
            return
        if self._handle is not None:
            if self._armed_for_ms <= deadline_ms:
                return
            self._disarm()
        now_ms = self._clock.monotonic_ms()
        self._armed_for_ms = min(deadline_ms, now_ms + LONGEST_SLEEP_MS)
        self._handle = self._loop.call_later(max(0, self._armed_for_ms - now_ms) / 1000, self._wake)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _wake(self) -> None:
        self._handle = None
        try:
            self._timer.advance(budget_ms=ADVANCE_BUDGET_MS)
        finally:
            # Not if a task has stopped the ticker; also if a task has raised an unhandled error.
            if self._timer.on_earlier_deadline is not None:
                self._arm()
