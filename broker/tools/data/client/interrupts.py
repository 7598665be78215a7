"""SIGINT and SIGTERM end a command in order; a second one ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """A signal has arrived. The command cleans up and ends with `status`, as a shell reports it."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__(signal.Signals(number).name)


class Interrupts:
    """Waits are broken off at the first signal; work that cleans up afterwards is not."""

    def __init__(self) -> None:
        self._signal: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def note(self, number: int) -> None:
        """A signal has arrived."""
        if self._signal.done():
            os._exit(128 + number)
        self._signal.set_result(number)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take the place of Python's own handlers."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.note, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def during(self, work: Awaitable[T]) -> T:
        """The result of `work`, which is cancelled by a signal. Raises: Interrupted."""
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, self._signal), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        if self._signal.done():
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
            raise Interrupted(self._signal.result())
        return task.result()
