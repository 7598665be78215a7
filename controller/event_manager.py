"""The event queue of the controller: events are handled in the order of arrival, one at a time.

`clear` drops the queued events and completes their replies; the current event continues. After `close` no event is
accepted. How long each kind of event waited and took is counted.

Kafka: ControllerEventManager, ControllerStats.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from odradek.controller.events import ControllerEvent, RequestEvent, preempt
from odradek.timer.histogram import Histogram

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

    def __init__(self, handle: Callable[[ControllerEvent], Awaitable[None]], now_ms: Callable[[], int]) -> None:
        """`now_ms` is the monotonic time."""
        self._handle = handle
        self._now_ms = now_ms
        self._queue: deque[tuple[ControllerEvent, int]] = deque()
        """Each with the time of its arrival."""
        self.current: type[ControllerEvent] | None = None
        """The kind of event that is being handled."""
        self.queue_time_ms = Histogram()
        self.times_ms: dict[type[ControllerEvent], Histogram] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._is_closed

    def __len__(self) -> int:
        """The number of events that wait."""
        return len(self._queue)

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
        self._queue.append((event, self._now_ms()))
        self._idle.clear()
        self._wake.set()

    def clear(self) -> None:
        while self._queue:
            preempt(self._queue.popleft()[0])

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
            event, put_ms = self._queue.popleft()
            began_ms = self._now_ms()
            self.queue_time_ms.update(began_ms - put_ms)
            self.current = type(event)
            await self._handle(event)
            self.current = None
            self.times_ms.setdefault(type(event), Histogram()).update(self._now_ms() - began_ms)
            del event  # else the partitions that it names stay in memory until the next event
