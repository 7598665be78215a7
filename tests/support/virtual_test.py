"""Tests of coroutines on `socket_loop`, most in virtual time: when nothing else can go on, the clock does."""

from __future__ import annotations

import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Final, ParamSpec

from odradek.broker.tools.command.socket_loop import run
from odradek.timer.clock import ManualClock, SystemClock

P = ParamSpec("P")

START_MS: Final = 1_000_000
LIMIT_MS: Final = 86_400_000
"""No test waits for a day."""

_clocks: list[ManualClock] = []


class VirtualSelector(selectors.SelectSelector):
    """Nothing is registered: it waits for time alone, and no longer than the clock says."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "all tasks wait for something that never comes"
        assert self._clock.monotonic_ms() < START_MS + LIMIT_MS, "the test waits for something that never comes"
        self._clock.advance(round(timeout * 1000))
        return []


def loop_test(test: Callable[P, Coroutine[object, None, None]]) -> Callable[P, None]:
    """Run a test coroutine to its end on a loop that waits in earnest."""

    @functools.wraps(test)
    def run_test(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs), SystemClock())

    return run_test


def virtual_test(test: Callable[P, Coroutine[object, None, None]]) -> Callable[P, None]:
    """Run a test coroutine to its end on a loop and a clock of its own."""

    @functools.wraps(test)
    def run_test(*args: P.args, **kwargs: P.kwargs) -> None:
        clock = ManualClock(START_MS)
        _clocks.append(clock)
        try:
            run(test(*args, **kwargs), clock, VirtualSelector(clock))
        finally:
            _clocks.pop()

    return run_test


def current_clock() -> ManualClock:
    """The clock of the test that runs; a new one outside of a virtual test."""
    return _clocks[-1] if _clocks else ManualClock(START_MS)
