"""Drives the timer from the event loop: the only place of the broker that sleeps.

One `call_later` is armed for the timer's next deadline, and armed anew when an earlier one appears. Waking up too
early does no harm (the timer runs what is due by its clock and names the next deadline), so a deadline that went away
because its task was cancelled is left armed: re-arming costs more than waking up once for nothing, and most tasks are
cancelled.

A wake-up works for `ADVANCE_BUDGET_MS` and then gives the loop a turn before it goes on, so that a hundred thousand
time-outs in the same millisecond do not keep the sockets waiting.

Kafka: the `ExpiredOperationReaper` thread of Kafka's purgatories and to its `SystemTimerReaper`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from odradek.timer.clock import Clock
from odradek.timer.system_timer import SystemTimer

ADVANCE_BUDGET_MS = 10
"""How long a wake-up goes on beginning tasks. Callbacks of the loop are to stay under 50 ms, the last task included."""

LONGEST_SLEEP_MS = 3_600_000
"""An hour. Event loops do not take any delay (asyncio caps its own at a day); waking up once an hour costs nothing."""


class Handle(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """What the ticker needs of an asyncio loop."""

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
        """Sleep no more. Tasks keep waiting in the timer, for `start` or for nobody."""
        self._timer.on_earlier_deadline = None
        self._disarm()

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
            # Unless a task has stopped the ticker, and also if one has raised what nobody handles.
            if self._timer.on_earlier_deadline is not None:
                self._arm()
