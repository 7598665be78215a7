"""Runs coroutines that wait for sockets, for time, and for each other.

The import of asyncio takes as much processor time as all else that `odradek produce` of one record does, so no client
command imports it. What they need of an event loop is here: tasks that run at the same time and can be cancelled,
events, and deadlines. A coroutine goes on from one `await` of this module to the next; nothing else runs meanwhile.
"""

from __future__ import annotations

import selectors
from _thread import get_ident
from collections import deque
from collections.abc import Awaitable, Coroutine, Generator, Iterable, Sequence
from types import coroutine
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

T = TypeVar("T")
READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
MAX_SELECT_S: Final = 24 * 3600
"""A selector takes at most 2**31 - 1 ms, which a deadline may exceed: it is looked at again after a day."""


class Waitable(Protocol):
    """What a selector waits for: a socket, with TLS or without."""

    def fileno(self) -> int: ...


class Cancelled(BaseException):
    """Raised in a task that is cancelled, at its present `await`."""


class Event:
    """Something that happens once."""

    __slots__ = ("is_set", "waiting")

    def __init__(self) -> None:
        self.is_set = False
        self.waiting: list[Task[object]] = []

    def set(self) -> None:
        """It has happened: what waits for it goes on."""
        self.is_set = True
        for task in tuple(self.waiting):
            task.loop.resume(task)

    async def wait(self, until_ms: int | None = None) -> bool:
        """Wait until it has happened, or the monotonic clock is at `until_ms`. Returns whether it has."""
        if not self.is_set:
            await _wait(_Wait(None, 0, self, until_ms))
        return self.is_set


class _Wait(NamedTuple):
    """What a coroutine yields to wait for a socket, an event, or only for time."""

    socket: Waitable | int | None
    events: int
    event: Event | None
    until_ms: int | None


class Task(Generic[T]):
    """A coroutine that runs at the same time as others."""

    __slots__ = ("_value", "coroutine", "ended", "error", "is_background", "loop", "wait")

    def __init__(self, loop: _Loop, work: Coroutine[object, None, T], *, is_background: bool) -> None:
        self.loop = loop
        self.coroutine = work
        self.is_background = is_background
        self.ended = Event()
        self.error: BaseException | None = None
        """What it is to raise when it goes on; after its end, what it has raised."""
        self.wait: _Wait | None = None
        self._value: T | None = None

    @property
    def is_done(self) -> bool:
        return self.ended.is_set

    def result(self) -> T:
        """What the coroutine has returned. Raises: what it has raised; Cancelled."""
        assert self.is_done
        if self.error is not None:
            raise self.error
        return cast("T", self._value)

    def cancel(self, error: BaseException | None = None) -> None:
        """Raise Cancelled, or this error, in the task. Does nothing after its end."""
        if self.is_done:
            return
        self.error = error or Cancelled()
        if self.wait is not None:
            self.loop.resume(cast("Task[object]", self), self.error)

    def end(self, value: T | None, error: BaseException | None) -> None:
        """Of the loop: the coroutine has ended."""
        self._value = value
        self.error = error
        self.ended.set()


class Background:
    """Tasks that nobody waits for. An error that one of them raises is raised in the coroutine of `run`."""

    def __init__(self) -> None:
        self._tasks: list[Task[None]] = []

    def start(self, work: Coroutine[object, None, None]) -> None:
        """Begin a coroutine."""
        self._tasks = [task for task in self._tasks if not task.is_done]
        self._tasks.append(_current_loop().add(work, is_background=True))

    async def close(self) -> None:
        """Cancel all tasks and wait for their ends."""
        await cancel(self._tasks)


@coroutine
def _wait(wanted: _Wait) -> Generator[_Wait, None, None]:
    yield wanted


@coroutine
def turn() -> Generator[None, None, None]:
    """Let all other tasks go on that can."""
    yield


async def wait_for(sock: Waitable | int, events: int, until_ms: int | None) -> None:
    """Wait until a socket or a descriptor is ready. Raises: TimeoutError when the monotonic clock is at `until_ms`."""
    await _wait(_Wait(sock, events, None, until_ms))


async def sleep(until_ms: int) -> None:
    """Wait until the monotonic clock is at `until_ms`."""
    await _wait(_Wait(None, 0, None, until_ms))


def spawn(work: Coroutine[object, None, T]) -> Task[T]:
    """Run a coroutine at the same time as the one that runs. It begins when that one waits."""
    return _current_loop().add(work)


async def cancel(tasks: Iterable[Task[T]]) -> None:
    """Cancel tasks and wait for their ends; their errors are dropped."""
    cancelled = tuple(tasks)
    for task in cancelled:
        task.cancel()
    for task in cancelled:
        await task.ended.wait()


async def gather(works: Sequence[Awaitable[T]]) -> list[T]:
    """Run coroutines at the same time. Their results, in order; when one has raised, its error after all have ended."""
    if not works:
        return []
    if len(works) == 1:
        return [await works[0]]
    tasks = [spawn(work) for work in cast("Sequence[Coroutine[object, None, T]]", works)]
    try:
        for task in tasks:
            await task.ended.wait()
    except (Exception, Cancelled):
        await cancel(tasks)
        raise
    return [task.result() for task in tasks]


def run(work: Coroutine[object, None, T], clock: Clock, selector: selectors.BaseSelector | None = None) -> T:
    """Run a coroutine to its end. Returns its result, and raises what it raises. `selector`: of a test."""
    thread = get_ident()
    assert thread not in _loops, "one loop in a thread at a time"
    loop = _loops[thread] = _Loop(clock, selector or selectors.DefaultSelector())
    try:
        return loop.run(work)
    finally:
        del _loops[thread]
        loop.close()


class _Loop:
    def __init__(self, clock: Clock, selector: selectors.BaseSelector) -> None:
        self._clock = clock
        self._selector = selector
        self._ready: deque[Task[object]] = deque()
        self._waiting: set[Task[object]] = set()
        self._main: Task[object] | None = None

    def add(self, work: Coroutine[object, None, T], *, is_background: bool = False) -> Task[T]:
        task = Task(self, work, is_background=is_background)
        self._ready.append(cast("Task[object]", task))
        return task

    def run(self, work: Coroutine[object, None, T]) -> T:
        main = self.add(work)
        self._main = cast("Task[object]", main)
        while not main.is_done:
            for _ in range(len(self._ready)):
                self._step(self._ready.popleft())
            if not main.is_done:
                self._select()
        return main.result()

    def close(self) -> None:
        """Ends the coroutines that still wait, and those that have not begun, after an interrupt."""
        for task in (*self._waiting, *self._ready):
            task.coroutine.close()
        self._selector.close()

    def resume(self, task: Task[object], error: BaseException | None = None) -> None:
        """The wait of a task is over."""
        wait, task.wait = task.wait, None
        if wait is not None and wait.socket is not None:
            self._selector.unregister(wait.socket)
        if wait is not None and wait.event is not None:
            wait.event.waiting.remove(task)
        self._waiting.discard(task)
        task.error = error
        self._ready.append(task)

    def _step(self, task: Task[object]) -> None:
        error, task.error = task.error, None
        try:
            wanted = task.coroutine.send(None) if error is None else task.coroutine.throw(error)
        except StopIteration as end:
            task.end(end.value, None)
        except (Exception, Cancelled) as failure:  # noqa: BLE001
            task.end(None, failure)
            if task.is_background and isinstance(failure, Exception) and self._main is not None:
                self._main.cancel(failure)
        else:
            if not isinstance(wanted, _Wait) or task.error is not None:  # a turn, or it has cancelled itself
                self._ready.append(task)
                return
            task.wait = wanted
            self._waiting.add(task)
            if wanted.socket is not None:
                self._selector.register(wanted.socket, wanted.events, task)
            if wanted.event is not None:
                wanted.event.waiting.append(task)

    def _select(self) -> None:
        """Resume what can go on; waits unless a task is ready."""
        timeout_s: float | None = 0
        if not self._ready:
            deadlines = [task.wait.until_ms for task in self._waiting if task.wait is not None]
            next_ms = min((deadline for deadline in deadlines if deadline is not None), default=None)
            if next_ms is None:
                timeout_s = None
            else:
                timeout_s = min(max(0, next_ms - self._clock.monotonic_ms()) / 1000, MAX_SELECT_S)
        for key, _ in self._selector.select(timeout_s):
            self.resume(key.data)
        now_ms = self._clock.monotonic_ms()
        for task in tuple(self._waiting):
            wait = task.wait
            if wait is not None and wait.until_ms is not None and wait.until_ms <= now_ms:
                self.resume(task, None if wait.socket is None else TimeoutError())


_loops: Final[dict[int, _Loop]] = {}
"""By thread."""


def _current_loop() -> _Loop:
    return _loops[get_ident()]
