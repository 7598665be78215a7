"""What a broker has under way outside its event loop: in its I/O threads, its worker processes and its metadata tree.

`Activity` counts it, so that `advance` can wait for its end by events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.machine.io_pool import ThreadIoPool
from odradek.broker.machine.worker_processes import Job, WorkerProcesses
from odradek.controller.tree.embedded_tree import EmbeddedTree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.controller.tree.metadata_tree import Operation, TreeError
    from odradek.storage.disk.ports import WorkerError

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")

TURNS: Final = 16
"""Turns of the event loop in which nothing may begin before a broker counts as idle: so many steps may lie between a
result and the work that it begins, as a coroutine that is called back goes on in the next turn.
"""


class Activity:
    """The number of jobs under way. All methods run on the event loop of the broker."""

    __slots__ = ("_ended", "_jobs")

    def __init__(self) -> None:
        self._jobs = 0
        self._ended = asyncio.Event()
        self._ended.set()

    def begin(self) -> None:
        self._jobs += 1
        self._ended.clear()

    def end(self) -> None:
        self._jobs -= 1
        if not self._jobs:
            self._ended.set()

    async def settle(self) -> None:
        """Wait until no job is under way and no coroutine begins one."""
        quiet = 0
        while quiet < TURNS:
            if self._jobs:
                await self._ended.wait()
                quiet = 0
            await asyncio.sleep(0)
            quiet += 1


class CountedIoPool(ThreadIoPool):
    """The threads of a broker, with their work counted."""

    __slots__ = ("_activity",)

    def __init__(self, loop: asyncio.AbstractEventLoop, activity: Activity) -> None:
        super().__init__(loop)
        self._activity = activity

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        def finish(result: T | OSError) -> None:
            self._activity.end()
            done(result)

        self._activity.begin()
        super().submit(work, finish)

    def _report(self, error: BaseException) -> None:
        self._activity.end()
        super()._report(error)


class CountedWorkers(WorkerProcesses):
    """The worker processes of a broker, with their jobs counted."""

    __slots__ = ("_activity",)

    def __init__(self, loop: asyncio.AbstractEventLoop, activity: Activity) -> None:
        super().__init__(loop)
        self._activity = activity

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> Job:
        def finish(result: T | OSError | WorkerError) -> None:
            self._activity.end()
            done(result)

        self._activity.begin()
        return super().submit(work, argument, finish, on_report)


class CountedTree(EmbeddedTree):
    """The metadata tree of a broker, with its requests counted."""

    activity: Activity

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        self.activity.begin()
        try:
            return await super().submit(operations)
        finally:
            self.activity.end()
