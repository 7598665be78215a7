"""Work in small steps, done a few milliseconds at a time, so that it never blocks the loop for long.

Work that grows with the size of a request or of a log is written as a generator that yields wherever it may pause. Its
first steps are done at once, so that a small amount of work is done when `submit` returns. The rest is done in slices
of `SLICE_MS`, and the loop runs everything else between two slices. A step is atomic: a check and the write that
depends on it have no `yield` in between.

A generator that has to wait for something else, such as a read from a disk, yields a `Wait`.

Kafka needs nothing like it: its request handlers and schedulers are threads, which may compute for any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from odradek.timer.clock import Clock
from odradek.timer.system_timer import SystemTimer

T = TypeVar("T")

SLICE_MS: Final = 5
"""How long a slice may take. Its last step begins before that: a step that creates or renames
files may take milliseconds on a busy disk, so the clock is read after each one.
"""

IMMEDIATE_STEPS: Final = 64
"""Steps that are done at once. So many appends to logs take two milliseconds, so many records a tenth of one."""


class Wait:
    """What a step waits for. `begin` gets the callback that ends the wait, and calls it once, now or later."""

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Callable[[], None]], None]) -> None:
        self.begin = begin


def waited_for(submit: Callable[[Callable[[T], None]], None]) -> Generator[Wait, None, T]:
    """A step that waits for a result. `submit` gets the callback for it when the wait begins."""
    results: list[T] = []

    def begin(end: Callable[[], None]) -> None:
        def done(result: T) -> None:
            results.append(result)
            end()

        submit(done)

    yield Wait(begin)
    return results[0]


Steps: TypeAlias = Generator[Wait | None, None, None]
"""Work in steps; it may pause at each `yield`."""


ITEMS_A_STEP: Final = 64
"""Of `listed` and `distinct`, for items that take microseconds each."""


def listed(items: Iterable[T]) -> Generator[None, None, list[T]]:
    """All items in a list, in steps: for what one request names. They must not change meanwhile."""
    source = iter(items)
    found: list[T] = []
    while some := list(islice(source, ITEMS_A_STEP)):
        found += some
        yield
    return found


def chosen(items: Iterable[T], is_wanted: Callable[[T], object]) -> Generator[None, None, list[T]]:
    """The wanted items in a list, in steps. A filter within `listed` would be one step where it chooses nothing."""
    source = iter(items)
    found: list[T] = []
    while some := list(islice(source, ITEMS_A_STEP)):
        found += filter(is_wanted, some)
        yield
    return found


def distinct(items: Iterable[T]) -> Generator[None, None, dict[T, None]]:
    """Each item once in the order of the first mentions, in steps."""
    source = iter(items)
    found: dict[T, None] = {}
    while some := list(islice(source, ITEMS_A_STEP)):
        found.update(dict.fromkeys(some))
        yield
    return found


def run_through(work: Generator[Wait | None, None, T]) -> T:
    """Do all of it now and return its result: for small amounts of work. It must not wait."""
    while True:
        try:
            wait = next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        assert wait is None, "run_through cannot wait"


class SlicedWork:
    """Runs generators to their end.

    One after the other in the order of `submit`, and none begins while another waits; or, `in_turns`, a slice of each
    in turn.
    """

    __slots__ = ("_clock", "_in_turns", "_is_held", "_is_scheduled", "_queue", "_timer")

    def __init__(self, timer: SystemTimer, clock: Clock, *, in_turns: bool = False) -> None:
        self._timer = timer
        self._clock = clock
        self._in_turns = in_turns
        self._queue: deque[Steps] = deque()
        self._is_scheduled = False
        self._is_held = False
        """The first one of the queue waits, and the others with it."""

    def submit(self, work: Steps) -> None:
        """Do the first steps now, unless others come first, and the rest, if any, in slices."""
        if self._in_turns or not (self._queue or self._is_held):
            self._go_on(work, self._clock.monotonic_ms() + SLICE_MS, IMMEDIATE_STEPS)
        else:
            self._queue.append(work)

    def close(self) -> None:
        """Give up all that is not done."""
        while self._queue:
            self._queue.popleft().close()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._timer.schedule(0, self._run_slice)

    def _run_slice(self) -> None:
        self._is_scheduled = False
        deadline_ms = self._clock.monotonic_ms() + SLICE_MS
        while self._queue and not self._is_held:
            work = self._queue.popleft()
            if self._queue:
                self._schedule()  # the rest must not depend on this one going well
            if not self._go_on(work, deadline_ms) or self._clock.monotonic_ms() >= deadline_ms:
                if self._queue and not self._is_held:
                    self._schedule()
                return

    def _go_on(self, work: Steps, deadline_ms: int, most_steps: int = -1) -> bool:
        """Do steps until the deadline; whether there was nothing left to put off."""
        for steps, wait in enumerate(work, 1):
            if wait is not None and not self._is_over(wait, work):
                return True
            if steps == most_steps or self._clock.monotonic_ms() >= deadline_ms:
                self._put_off(work, first=not self._in_turns)
                return False
        return True

    def _put_off(self, work: Steps, *, first: bool) -> None:
        if first:
            self._queue.appendleft(work)
        else:
            self._queue.append(work)
        self._schedule()

    def _is_over(self, wait: Wait, work: Steps) -> bool:
        """Begin to wait; whether that was over at once. If not, the work goes on when it is."""
        is_over = is_put_off = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            if is_put_off:
                self._is_held = False
                self._put_off(work, first=True)

        wait.begin(end)
        if not is_over:
            is_put_off = True
            self._is_held = not self._in_turns
        return is_over
