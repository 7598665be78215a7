"""Runs coroutines that wait for sockets and for time.

asyncio needs four times as long to be imported as all modules of a small command together. A command needs a few
sockets, time-outs, and several requests at a time, which is what is here.
"""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Awaitable, Coroutine, Generator, Sequence
from types import coroutine
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

T = TypeVar("T")
READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Waitable(Protocol):
    """What a selector waits for: a socket, with TLS or without."""

    def fileno(self) -> int: ...


class _Wait(NamedTuple):
    """What a coroutine yields to wait for a socket, or only for time."""

    socket: Waitable | None
    events: int
    until_ms: int


class _Task:
    """A coroutine, and the group that waits for it."""

    __slots__ = ("coroutine", "group", "index", "wait")

    def __init__(self, work: Coroutine[object, object, object], group: _Group | None, index: int) -> None:
        self.coroutine = work
        self.group = group
        self.index = index
        self.wait: _Wait | None = None


class _Group:
    """Coroutines that run at the same time, and the task that waits for them all."""

    def __init__(self, works: Sequence[Coroutine[object, object, object]]) -> None:
        self.works = works
        self.parent: _Task | None = None
        self.results: list[object] = [None] * len(works)
        self.pending = len(works)
        self.error: BaseException | None = None


@coroutine
def wait_for(sock: Waitable, events: int, until_ms: int) -> Generator[_Wait, None, None]:
    """Wait until a socket is ready. Raises: TimeoutError when the monotonic clock is at `until_ms`."""
    yield _Wait(sock, events, until_ms)


@coroutine
def sleep(until_ms: int) -> Generator[_Wait, None, None]:
    """Wait until the monotonic clock is at `until_ms`."""
    yield _Wait(None, 0, until_ms)


async def gather(works: Sequence[Awaitable[T]]) -> list[T]:
    """Run coroutines at the same time. Their results, in order; when one has raised, its error after all have ended."""
    if not works:
        return []
    if len(works) == 1:
        return [await works[0]]
    return cast("list[T]", await _all_of(_Group(cast("Sequence[Coroutine[object, object, object]]", works))))


@coroutine
def _all_of(group: _Group) -> Generator[_Group, list[object], list[object]]:
    return (yield group)


def run(work: Coroutine[object, object, T], clock: Clock) -> T:
    """Run a coroutine to its end. Returns its result, and raises what it raises."""
    loop = _Loop(clock)
    try:
        return cast("T", loop.run(work))
    finally:
        loop.close()


class _Loop:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._ready: deque[tuple[_Task, object, BaseException | None]] = deque()
        self._waiting: set[_Task] = set()
        self._outcome: list[tuple[object, BaseException | None]] = []

    def run(self, work: Coroutine[object, object, object]) -> object:
        self._ready.append((_Task(work, None, 0), None, None))
        while not self._outcome:
            while self._ready:
                self._step(*self._ready.popleft())
            if not self._outcome:
                self._select()
        ((value, error),) = self._outcome
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Ends the coroutines that still wait, and those that have not begun, after an interrupt."""
        for task in (*self._waiting, *(task for task, _, _ in self._ready)):
            task.coroutine.close()
        self._selector.close()

    def _step(self, task: _Task, value: object, error: BaseException | None) -> None:
        try:
            wanted = task.coroutine.send(value) if error is None else task.coroutine.throw(error)
        except StopIteration as end:
            self._end(task, end.value, None)
        except Exception as failure:  # noqa: BLE001
            self._end(task, None, failure)
        else:
            if isinstance(wanted, _Group):
                wanted.parent = task
                for index, work in enumerate(wanted.works):
                    self._ready.append((_Task(work, wanted, index), None, None))
            elif isinstance(wanted, _Wait):
                task.wait = wanted
                self._waiting.add(task)
                if wanted.socket is not None:
                    self._selector.register(wanted.socket, wanted.events, task)
            else:  # a bare yield: a turn of the loop
                self._ready.append((task, None, None))

    def _end(self, task: _Task, value: object, error: BaseException | None) -> None:
        group = task.group
        if group is None:
            self._outcome.append((value, error))
            return
        group.results[task.index] = value
        group.error = group.error or error
        group.pending -= 1
        if group.pending == 0:
            assert group.parent is not None
            self._ready.append((group.parent, group.results, group.error))

    def _select(self) -> None:
        now_ms = self._clock.monotonic_ms()
        next_ms = min(task.wait.until_ms for task in self._waiting if task.wait is not None)
        timeout_s = max(0, next_ms - now_ms) / 1000
        for key, _ in self._selector.select(timeout_s):
            self._resume(key.data, None)
        now_ms = self._clock.monotonic_ms()
        for task in [task for task in self._waiting if task.wait is not None and task.wait.until_ms <= now_ms]:
            is_late = task.wait is not None and task.wait.socket is not None
            self._resume(task, TimeoutError() if is_late else None)

    def _resume(self, task: _Task, error: BaseException | None) -> None:
        if task.wait is not None and task.wait.socket is not None:
            self._selector.unregister(task.wait.socket)
        task.wait = None
        self._waiting.discard(task)
        self._ready.append((task, None, error))
