"""Runs tasks when their delay has passed. Everything in the broker that waits for a time waits in a timer like this.

The timer does not tick. It knows its next deadline, `broker/machine/ticker.py` sleeps until then and calls `advance`.
When a new task brings the deadline forward, `on_earlier_deadline` says so.

- A task never runs early, by `Clock.monotonic_ms`, and at most one tick late, plus however late `advance` is called.
  Tasks run in the order of their expiration, first those that were expired when they were added; tasks of the same
  tick in no promised order.
- A task whose delay is zero or negative runs in the next `advance`: never inside `add`, whose caller is not ready for
  it, and never in the `advance` that is under way, which would not end if a task kept adding itself.
- While a task runs it waits nowhere, so it may add itself again, add and cancel others. `advance` is not re-entrant.
- A task that raises does not keep the others from running. The exception is a bug: no request is there to answer. It
  is handed to `on_error`; without one, `advance` finishes its round and raises all of them as one ExceptionGroup, so
  that a test or a tool cannot overlook it. What is not an `Exception` (KeyboardInterrupt, cancellation) passes at
  once, and the tasks that have not run yet keep waiting.

Kafka: SystemTimer, which hands expired tasks to an executor thread; here the next `advance` runs them. Two differences:
an expired task that has not run yet can still be cancelled, and an expiration past 2^63 ms never comes (in Java it
overflows and fires at once).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.timer.clock import Clock
from odradek.timer.task import NOWHERE, CallbackTask, RoundTask, TimerTask
from odradek.timer.task_list import TimerTaskList
from odradek.timer.timing_wheel import BucketQueue, TimingWheel

ErrorHandler = Callable[[TimerTask, Exception], None]

_DEMOTION_SLICE = 1024
"""Tasks to demote between two looks at the clock: well under a millisecond."""


class WheelState(NamedTuple):
    """One level of the wheel as `SystemTimer.inspect` shows it."""

    level: int
    tick_ms: int
    current_time_ms: int
    buckets: dict[int, tuple[TimerTask, ...]]
    """Place in the ring -> the tasks waiting there, in order. Empty buckets are left out."""


class SystemTimer:
    """A hierarchical timing wheel driven by a clock."""

    __slots__ = (
        "_advancing",
        "_due",
        "_queue",
        "_running",
        "_tick_ms",
        "_unhandled",
        "_wheel",
        "monotonic_ms",
        "on_earlier_deadline",
        "on_error",
        "stretch_ms",
    )

    def __init__(
        self,
        clock: Clock,
        tick_ms: int = 1,
        wheel_size: int = 20,
        *,
        on_error: ErrorHandler | None = None,
    ) -> None:
        if tick_ms < 1 or wheel_size < 2:
            raise ValueError(f"a wheel needs a tick of 1 ms and 2 buckets at least: {tick_ms} ms, {wheel_size} buckets")
        self.monotonic_ms = clock.monotonic_ms
        """The time of the clock that drives the timer."""
        self._tick_ms = tick_ms
        self._queue: BucketQueue = []
        self._wheel = TimingWheel(tick_ms, wheel_size, clock.monotonic_ms(), self._queue)
        self._due = TimerTaskList()
        """Tasks that were expired when they were added."""
        self._running = TimerTaskList()
        """Those of them that the `advance` under way, or one cut short by its budget, is to run."""
        self._advancing = False
        self._unhandled: list[Exception] = []
        self.on_error = on_error
        self.on_earlier_deadline: Callable[[], None] | None = None
        self.stretch_ms: Callable[[int], int] | None = None
        """Interval -> delay until the next round; set while the clock of a test is advanced. None: the interval."""

    def add(self, task: TimerTask) -> None:
        """Run `task` in `task.delay_ms` from now. A task that waits already, here or in another timer, is moved."""
        if task.bucket is not None:
            task.cancel()
        now_ms = self.monotonic_ms()
        wheel = self._wheel
        queue = self._queue
        if now_ms > wheel.current_time_ms and not (queue and queue[0][0] <= now_ms):
            # Nothing was due in the meantime. Catching up spares short delays the way through an overflow wheel.
            wheel.advance_clock(now_ms)
        delay_ms = task.delay_ms
        if delay_ms <= 0:
            task.expiration_ms = now_ms
            self._due.add(task)
            if self._due.size == 1:
                self._notice_earlier_deadline()
            return
        expiration_ms = now_ms + delay_ms
        if self._tick_ms != 1:
            # A bucket falls due at its beginning: up to the next whole tick, or the task would run early.
            expiration_ms += -expiration_ms % self._tick_ms
        task.expiration_ms = expiration_ms
        if wheel.add(task) and queue[0][2] is task.bucket:
            self._notice_earlier_deadline()

    def schedule(self, delay_ms: int, callback: Callable[[], object]) -> TimerTask:
        """Call `callback` in `delay_ms`; the task returned can be cancelled."""
        task = CallbackTask(delay_ms, callback)
        self.add(task)
        return task

    def schedule_round(self, interval_ms: int, callback: Callable[[], object]) -> TimerTask:
        """Call `callback` in `interval_ms`, for the next round of work that recurs."""
        task = RoundTask(self.round_delay_ms(interval_ms), callback)
        self.add(task)
        return task

    def round_delay_ms(self, interval_ms: int) -> int:
        """The delay until the next round of work that recurs."""
        return interval_ms if self.stretch_ms is None else self.stretch_ms(interval_ms)

    def advance(self, budget_ms: int | None = None) -> int:
        """Run all tasks that are due by the clock; returns their number.

        With a budget, stop after the first task that ends `budget_ms` or more after the call. What is left stays due,
        and `next_deadline_ms` says so, until it has run.
        """
        if self._advancing:
            raise RuntimeError("a task called SystemTimer.advance")
        now_ms = self.monotonic_ms()
        stop_ms = None if budget_ms is None else now_ms + budget_ms
        self._advancing = True
        try:
            fired, done = self._run_added_due(stop_ms)
            queue = self._queue
            finest = self._wheel
            while done and queue and queue[0][0] <= now_ms:
                deadline_ms, _, bucket, wheel = queue[0]
                finest.advance_clock(deadline_ms)
                if wheel is finest:
                    count, done = self._run_tasks(bucket, stop_ms)
                    fired += count
                    if not bucket.size:
                        finest.remove_first()
                else:
                    wheel.demote(_DEMOTION_SLICE)
                    done = stop_ms is None or self.monotonic_ms() < stop_ms
            if done:
                finest.advance_clock(now_ms)
        finally:
            self._advancing = False
        if self._unhandled:
            self.raise_unhandled()
        return fired

    def next_deadline_ms(self) -> int | None:
        """The monotonic time at which `advance` next has something to do; None if nothing waits."""
        if self._running.size:
            return self._running.root.next.expiration_ms
        if self._due.size:
            return self._due.root.next.expiration_ms
        queue = self._queue
        while queue:
            deadline_ms, _, bucket, wheel = queue[0]
            if bucket.size or self._advancing:
                return deadline_ms
            # All its tasks were cancelled: waking up for it would be for nothing.
            wheel.remove_first()
        return None

    @property
    def size(self) -> int:
        """The number of tasks that wait."""
        return self._due.size + self._running.size + sum(bucket.size for _, _, bucket, _ in self._queue)

    def inspect(self) -> tuple[WheelState, ...]:
        """The tasks in each bucket, the finest wheel first: for tests and debugging."""
        return tuple(
            WheelState(
                level=level,
                tick_ms=wheel.tick_ms,
                current_time_ms=wheel.current_time_ms,
                buckets={place: tuple(bucket) for place, bucket in enumerate(wheel.buckets) if bucket and bucket.size},
            )
            for level, wheel in enumerate(self._wheel.levels(), start=1)
        )

    def report_error(self, task: TimerTask, error: Exception) -> None:
        """Hand an exception to `on_error`; without one, keep it for `raise_unhandled`."""
        if self.on_error is None:
            self._unhandled.append(error)
        else:
            self.on_error(task, error)

    def raise_unhandled(self) -> None:
        """Raise what has gathered, at the end of a round; a round within a running task leaves it to `advance`."""
        if self._unhandled and not self._advancing:
            errors, self._unhandled = self._unhandled, []
            raise ExceptionGroup("tasks failed", errors)

    def _notice_earlier_deadline(self) -> None:
        if self.on_earlier_deadline is not None and not self._advancing:
            self.on_earlier_deadline()

    def _run_added_due(self, stop_ms: int | None) -> tuple[int, bool]:
        """Run the tasks that were expired when added, but none that is added meanwhile."""
        if not self._running.size:
            self._running, self._due = self._due, self._running
        return self._run_tasks(self._running, stop_ms)

    def _run_tasks(self, bucket: TimerTaskList, stop_ms: int | None) -> tuple[int, bool]:
        """Run the tasks of `bucket`, all of which have expired: how many ran, and whether there was time for all."""
        fired = 0
        root = bucket.root
        while (task := root.next) is not root:
            # TimerTask.cancel for the first task of a list, written out: this is the hot loop of the timer.
            following = root.next = task.next
            following.previous = root
            task.previous = task.next = NOWHERE
            task.bucket = None
            bucket.size -= 1
            fired += 1
            try:
                task.run()
            except Exception as error:  # noqa: BLE001 - the one place for bugs of tasks: they go to on_error
                self.report_error(task, error)
            if stop_ms is not None and self.monotonic_ms() >= stop_ms:
                return fired, False
        return fired, True
