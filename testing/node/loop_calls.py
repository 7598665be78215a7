"""Calls of other threads to an event loop, which may stop meanwhile: each call gets its answer or an error."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.testing.errors import BrokerStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class LoopCalls:
    """Runs coroutines on one loop.

    The coroutine is made on the loop: one that is made before, and whose loop stops before it begins, is reported by
    Python as never awaited, and its future is never done.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        """Calls that have not begun."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._why_closed: str | None = None

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """The result of `work()`. The future's errors: those of `work`, BrokerStopped after `close`."""
        future: Future[T] = Future()
        with self._lock:
            if self._why_closed is None:
                self._waiting.add(future)
                self._loop.call_soon_threadsafe(self._begin, future, work)
                return future
        future.set_exception(BrokerStopped(self._why_closed))
        return future

    def close(self, reason: str) -> None:
        """Refuse calls from now on, and those that have not begun. To be called before the loop ends."""
        with self._lock:
            self._why_closed = reason
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokerStopped(reason))

    # On the loop

    def _begin(self, future: Future[T], work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        with self._lock:
            if future not in self._waiting:
                return
            self._waiting.discard(future)
        task = self._loop.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, future))
        future.add_done_callback(partial(self._cancel, task))

    def _ended(self, future: Future[T], task: asyncio.Task[T]) -> None:
        self._tasks.discard(task)
        if not future.set_running_or_notify_cancel():
            return  # nobody waits for the answer any more
        if task.cancelled():
            future.set_exception(BrokerStopped(self._why_closed or "The call was cancelled"))
        elif (error := task.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    def _cancel(self, task: asyncio.Task[T], future: Future[T]) -> None:
        """In the thread that has cancelled the future."""
        if future.cancelled():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(task.cancel)
