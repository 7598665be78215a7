"""The event queue of the controller: events are handled in the order of arrival, one at a time.

`clear` drops the queued events and completes their replies; the current event continues. After `close` no event is
accepted.

Kafka: ControllerEventManager.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from odradek.controller.events import ControllerEvent, RequestEvent, preempt

T = TypeVar("T")


class FutureReply(Generic[T]):
    """A future that may be completed after its waiter was cancelled."""

    def __init__(self, future: asyncio.Future[T]) -> None:
        self._future = future

    def set_result(self, result: T, /) -> None:
        if not self._future.done():
            self._future.set_result(result)

    def set_exception(self, exception: BaseException, /) -> None:
        if not self._future.done():
            self._future.set_exception(exception)


class ControllerEventManager:
    """See the module. `handle` must not raise."""

    def __init__(self, handle: Callable[[ControllerEvent], Awaitable[None]]) -> None:
        self._handle = handle
        self._queue: deque[ControllerEvent] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._is_closed

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="controller")

    async def close(self) -> None:
        """Finish the current event and drop the others."""
        self._is_closed = True
        self.clear()
        self._wake.set()
        if self._task is not None:
            await self._task

    def put(self, event: ControllerEvent) -> None:
        if self._is_closed:
            preempt(event)
            return
        self._queue.append(event)
        self._idle.clear()
        self._wake.set()

    def clear(self) -> None:
        while self._queue:
            preempt(self._queue.popleft())

    async def request(self, event_with: Callable[[FutureReply[T]], RequestEvent]) -> T:
        """Queue an event with a reply, and wait for the reply."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        event = event_with(FutureReply(future))
        if self._task is None:
            preempt(event)
        else:
            self.put(event)
        return await future

    async def settle(self) -> None:
        """Wait until every queued event is handled."""
        while self._task is not None and not self._task.done() and (self._queue or not self._idle.is_set()):
            await self._idle.wait()
            await asyncio.sleep(0)

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._idle.set()
                if self._is_closed:
                    return
                self._wake.clear()
                await self._wake.wait()
            await self._handle(self._queue.popleft())
