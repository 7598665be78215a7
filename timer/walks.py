"""Walks over many things without blocking the event loop: the first few at once, the next few in later callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from odradek.timer.sliced_work import SLICE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.timer.system_timer import SystemTimer

T = TypeVar("T")

PAUSE_MS: Final = 1
"""Between two callbacks of a walk, so that the loop can do everything else that is due."""


class Walks:
    """`at_once`: how many things one callback visits at most; after `SLICE_MS` it begins no further visit."""

    __slots__ = ("_is_stopped", "_timer", "at_once")

    def __init__(self, timer: SystemTimer, at_once: int) -> None:
        self._timer = timer
        self._is_stopped = False
        self.at_once = at_once

    def stop(self) -> None:
        """Nothing is visited any more."""
        self._is_stopped = True

    def walk(self, things: Iterable[T], visit: Callable[[T], object], done: Callable[[], object] | None = None) -> None:
        """Visit each of the things there are now, and then call `done`.

        A visit that raises ends the callback. Its error is reported like every error of a timer task (in the first
        callback it is raised to the caller); the others are visited all the same.
        """
        remaining = list(things)

        def visit_some() -> None:
            if self._is_stopped:
                return
            deadline_ms = self._timer.monotonic_ms() + SLICE_MS
            try:
                for _ in range(min(self.at_once, len(remaining))):
                    visit(remaining.pop())
                    if self._timer.monotonic_ms() >= deadline_ms:
                        break
            finally:
                if remaining:
                    self._timer.schedule(PAUSE_MS, visit_some)
                elif done is not None:
                    done()

        visit_some()
