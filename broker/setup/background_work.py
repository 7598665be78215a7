"""Coroutines that run beside the requests until the broker stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

logger = logging.getLogger(__name__)


class BackgroundWork:
    """The tasks of the coroutines. An error in one is logged and ends it alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_cancelled = False

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Run the coroutine in a task; after `cancel`, to its first wait."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self._is_cancelled:
            self._loop.call_soon(task.cancel)

    async def cancel(self) -> None:
        """Cancel each coroutine at its wait; one that has not begun runs to its first wait before.

        A coroutine that is cancelled before it begins cannot close the coroutine that it was given as an argument:
        Python reports that one as never awaited.
        """
        self._is_cancelled = True
        for task in self._tasks:
            self._loop.call_soon(task.cancel)
        await asyncio.sleep(0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("Error in background work", exc_info=error)
