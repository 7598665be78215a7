"""Time limits and pauses by the broker's timer: `asyncio.timeout` and `asyncio.sleep` use the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.timer.task import TimerTask

if TYPE_CHECKING:
    from types import TracebackType

    from odradek.timer.system_timer import SystemTimer


class Deadline(TimerTask):
    """A context that raises TimeoutError at the await of its block that runs when the time is over.

    A class, because a generator and its context cost four times the calls, with each request to another broker.
    """

    __slots__ = ("_is_over", "_task", "_timer", "_what")

    def __init__(self, timer: SystemTimer, timeout_ms: int, what: Callable[[], str]) -> None:
        """`what` is called for the message of the error."""
        super().__init__(timeout_ms)
        self._timer = timer
        self._what = what
        self._is_over = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None, "a deadline outside a task"
        self._timer.add(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.cancel()
        task, self._task = self._task, None
        if self._is_over and isinstance(error, asyncio.CancelledError):
            assert task is not None
            if task.uncancel() <= 0:  # else the task was also cancelled from outside
                raise TimeoutError(f"{self._what()} took more than {self.delay_ms} ms") from None

    def run(self) -> None:
        self._is_over = True
        assert self._task is not None
        self._task.cancel()


async def pause(timer: SystemTimer, delay_ms: int, *, until: asyncio.Future[None] | None = None) -> None:
    """Wait for `delay_ms`, but no longer than until the future `until` is done."""
    is_over = asyncio.Event()

    def end(_: object) -> None:
        is_over.set()

    expiration = timer.schedule(delay_ms, is_over.set)
    if until is not None:
        until.add_done_callback(end)
    try:
        await is_over.wait()
    finally:
        expiration.cancel()
        if until is not None:
            until.remove_done_callback(end)
