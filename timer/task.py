"""A task that runs once its delay has passed, unless it is cancelled first.

The task is its own list entry: while it waits, `bucket` names the list that holds it and `previous` and `next` are
its neighbours there; while it does not, `bucket` is None and the links mean nothing. So a task waits in one place
at most, and inserting it allocates nothing.

Kafka: TimerTask and TimerTaskEntry. Kafka has two objects because two threads may move one task at the same time; here
everything runs on one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.timer.task_list import TimerTaskList


class TimerTask:
    """Subclasses implement `run`, which is called at most once for each time the task is added to a timer."""

    __slots__ = ("bucket", "delay_ms", "expiration_ms", "next", "previous")

    bucket: TimerTaskList | None
    previous: TimerTask
    next: TimerTask
    recurs = False
    """Whether it is one round of work that recurs."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.bucket = None

    def run(self) -> None:
        raise NotImplementedError

    def cancel(self) -> None:
        """Leave the timer, in O(1). Without effect on a task that waits in none: not added, running, or done."""
        bucket = self.bucket
        if bucket is not None:
            previous = self.previous
            following = self.next
            previous.next = following
            following.previous = previous
            self.previous = self.next = NOWHERE
            self.bucket = None
            bucket.size -= 1

    @property
    def is_pending(self) -> bool:
        """Whether the task waits in a timer."""
        return self.bucket is not None


NOWHERE: Final = TimerTask(0)
"""Where the links of a task that has left its list point, so that it keeps no former neighbour alive."""


class CallbackTask(TimerTask):
    """A task made of a plain callable."""

    __slots__ = ("_callback",)

    def __init__(self, delay_ms: int, callback: Callable[[], object]) -> None:
        super().__init__(delay_ms)
        self._callback = callback

    def run(self) -> None:
        self._callback()


class RoundTask(CallbackTask):
    """The next round of work that recurs."""

    __slots__ = ()

    recurs = True
