"""SIGINT and SIGTERM end a command in order; a second one ends it at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

from odradek.broker.tools.command.socket_loop import READ, Cancelled, Task, cancel, spawn, wait_for

T = TypeVar("T")


class Interrupted(Exception):
    """A signal has arrived. The command cleans up and ends with `status`, as a shell reports it."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__(signal.Signals(number).name)


class Interrupts:
    """Waits are broken off at the first signal; work that cleans up afterwards is not."""

    def __init__(self) -> None:
        self._number: int | None = None
        """Of the signal that has arrived."""
        self._task: Task[object] | None = None
        """The work that it cancels."""

    def note(self, number: int) -> None:
        """A signal has arrived."""
        if self._number is not None:
            os._exit(128 + number)
        self._number = number
        if self._task is not None:
            self._task.cancel()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take the place of Python's own handlers.

        The interpreter writes the numbers of signals into a pipe, which the loop reads: a handler in Python would run
        in the midst of any step, and would not end the wait of a selector.
        """
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        before = {number: signal.signal(number, _leave_it_to_the_pipe) for number in (signal.SIGINT, signal.SIGTERM)}
        outer = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        watching = spawn(self._watch(reader))
        try:
            yield
        finally:
            watching.cancel()
            signal.set_wakeup_fd(outer)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    async def _watch(self, reader: int) -> None:
        while True:
            await wait_for(reader, READ, None)
            for number in os.read(reader, 100):
                if number in (signal.SIGINT, signal.SIGTERM):
                    self.note(number)

    async def during(self, work: Coroutine[object, None, T]) -> T:
        """The result of `work`, which is cancelled by a signal. Raises: Interrupted."""
        task = spawn(work)
        if self._number is not None:
            task.cancel()
        self._task = cast("Task[object]", task)
        try:
            await task.ended.wait()
        except (Exception, Cancelled):
            await cancel([task])
            raise
        finally:
            self._task = None
        if self._number is None:
            return task.result()
        if isinstance(task.error, Exception):
            raise task.error
        raise Interrupted(self._number)


def _leave_it_to_the_pipe(number: int, frame: object) -> None:
    """Signals with a handler in Python are written into the pipe."""
