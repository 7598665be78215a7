"""The pools of a simulated machine: work is done in this thread, after a delay that the seed draws.

Work that was submitted when the machine dies is never done, like an fsync that a killed process did not get to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, TypeVar

from odradek.storage.disk.ports import InlineIoPool, InlineWorkerPool, WorkerError, WorkerJob

if TYPE_CHECKING:
    from tests.support.simulation.environment.virtual_loop import VirtualLoop

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")

USUAL_WORK_US = (10, 1_000)
LONG_WORK_US = (1_000, 300_000)
LONG_SHARE = 0.05


class DelayedPools:
    """An IoPool and a WorkerPool in one: one queue, in which the order of submission is kept only by chance."""

    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        self._loop = loop
        self._rng = rng
        self._waiting: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def after_a_while(self, work: Callable[[], None]) -> Callable[[], None]:
        """Schedule it; returns a function that cancels it."""
        is_long = self._rng.random() < LONG_SHARE
        delay_us = self._rng.randint(*(LONG_WORK_US if is_long else USUAL_WORK_US))

        def run() -> None:
            del self._waiting[run]
            work()

        def cancel() -> None:
            handle = self._waiting.pop(run, None)
            if handle is not None:
                handle.cancel()

        self._waiting[run] = self._loop.call_later(delay_us / 1e6, run)
        return cancel

    def close(self) -> None:
        """Do all submitted work now."""
        for run, handle in list(self._waiting.items()):
            handle.cancel()
            run()


class DelayedIoPool(DelayedPools):
    """Implements machine.ClosableIoPool."""

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        self.after_a_while(lambda: InlineIoPool().submit(work, done))

    async def settled(self) -> None:
        """Do all submitted work now, and what its results submit."""
        while self._waiting:
            self.close()
            await asyncio.sleep(0)


class DelayedWorkerPool(DelayedPools):
    """Implements machine.ClosableWorkerPool."""

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> WorkerJob:
        return _Job(self, lambda: InlineWorkerPool().submit(work, argument, done, on_report), done)


class _Job:
    def __init__(
        self, pool: DelayedWorkerPool, work: Callable[[], object], done: Callable[[WorkerError], None]
    ) -> None:
        self._done = done
        self._is_over = False

        def run() -> None:
            self._is_over = True
            work()

        self._take_back = pool.after_a_while(run)

    def cancel(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._take_back()
            self._done(WorkerError("cancelled"))
