"""An event loop of virtual time for several machines at once: no I/O, no threads, no waiting.

Every callback belongs to the `Machine` whose code scheduled it: the context that asyncio passes from callback to
callback and to every task says which. Ready callbacks of a machine run in the order of arrival, as on a loop of its
own; the seed draws which machine is next. When nothing is ready, the clock jumps to the next deadline.

A machine can be paused (its callbacks pile up, as under SIGSTOP) and killed (they are kept and never run again). The
schedule of faults and the network itself belong to no machine.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_MS: Final = 1_700_000_000_000
"""The wall clock when a simulation begins."""

TURNS_WITHOUT_TIME_MAX: Final = 200_000
"""More callbacks than this at one moment count as an endless loop."""


class Stuck(AssertionError):
    """No callback is scheduled any more, or too many run at one moment."""


class Machine:
    """A place where callbacks run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[_Handle] = deque()
        self.is_paused = False
        self.is_alive = True
        self.after_turn: Callable[[], None] | None = None
        """Called after each turn of the machine."""
        self.context = copy_context()
        self.context.run(_machine.set, self)

    def __repr__(self) -> str:
        return self.name


_machine: ContextVar[Machine | None] = ContextVar("machine", default=None)


class _Handle(events.TimerHandle):
    """A callback with its context and its machine: asyncio's own does more, and is slower."""

    __slots__ = ("machine",)

    def __init__(
        self, callback: Callable[..., object], args: tuple[object, ...], context: Context | None, world: Machine
    ) -> None:
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._context = copy_context() if context is None else context
        self.machine = self._context.get(_machine) or world

    def cancel(self) -> None:
        self._cancelled = True


class VirtualClock:
    """The clock of the brokers. Implements Clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def time_ms(self) -> int:
        return EPOCH_MS + self._loop.now_us // 1000

    def monotonic_ms(self) -> int:
        return self._loop.now_us // 1000

    def monotonic_ns(self) -> int:
        return self._loop.now_us * 1000


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module. `failures` are the exceptions that nobody handled."""

    def __init__(self, rng: Random) -> None:
        self.now_us = 0
        self.world = Machine("world")
        self.machines = [self.world]
        self._killed: list[Machine] = []
        self.failures: list[BaseException | str] = []
        self._busy: dict[Machine, None] = {}
        """Those with something ready, in the order in which they got it."""
        self._rng = rng
        self._timers: list[tuple[int, int, _Handle]] = []
        self._number = 0
        self._tasks: list[asyncio.Task[object]] = []

    # Machines

    def add_machine(self, name: str) -> Machine:
        machine = Machine(name)
        self.machines.append(machine)
        return machine

    def kill(self, machine: Machine) -> None:
        """No callback of the machine runs from now on.

        Its callbacks and tasks stay in memory: Python runs the `finally` blocks of a coroutine or generator that it
        frees, in whatever machine's turn that happens, and a process that was killed runs none.
        """
        machine.is_alive = False
        self._busy.pop(machine, None)
        self.machines.remove(machine)
        self._killed.append(machine)

    # Running

    def run_until(self, is_done: Callable[[], bool], deadline_us: int) -> bool:
        """Run callbacks until `is_done` or the deadline; returns whether it is done."""
        turns, moment_us = 0, -1
        running = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while not is_done():
                ready = [machine for machine in self._busy if not machine.is_paused]
                if ready:
                    turns = turns + 1 if moment_us == self.now_us else 0
                    moment_us = self.now_us
                    if turns > TURNS_WITHOUT_TIME_MAX:
                        raise Stuck(f"{ready} run in circles")
                    self._turn(self._rng.choice(ready) if len(ready) > 1 else ready[0])
                elif not self._jump(deadline_us):
                    return is_done()
            return True
        finally:
            events._set_running_loop(running)

    def run(self, work: Coroutine[object, object, T], within_ms: int = 60_000, machine: Machine | None = None) -> T:
        """Run a coroutine to its end, outside of any machine unless one is named."""
        task = self.create_task(work, context=(machine or self.world).context.copy())
        if not self.run_until(task.done, self.now_us + within_ms * 1000):
            raise Stuck(f"{work} takes longer than {within_ms} ms")
        return task.result()

    def run_until_complete(self, future: Awaitable[T]) -> T:
        """For asyncio.run, so that tests of coroutines can be run on this loop."""
        task = asyncio.ensure_future(future, loop=self)
        assert self.run_until(task.done, self.now_us + 60_000_000)
        return task.result()

    def _turn(self, machine: Machine) -> None:
        """One iteration of a machine's loop: what is ready now, not what becomes ready meanwhile."""
        ready = machine.ready
        for _ in range(len(ready)):
            if not ready or machine.is_paused or not machine.is_alive:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except Exception as error:  # noqa: BLE001 - a bug, as in asyncio's loop
                    self.failures.append(error)
        if not ready:
            self._busy.pop(machine, None)
        if machine.after_turn is not None and machine.is_alive:
            machine.after_turn()

    def _jump(self, deadline_us: int) -> bool:
        """Move the clock to the next deadline; False if there is none before the limit."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers or timers[0][0] > deadline_us:
            self.now_us = deadline_us
            return False
        self.now_us = max(self.now_us, timers[0][0])
        while timers and timers[0][0] <= self.now_us:
            handle = heapq.heappop(timers)[2]
            if not handle._cancelled:
                self._make_ready(handle)
        return True

    def _make_ready(self, handle: _Handle) -> None:
        machine = handle.machine
        machine.ready.append(handle)
        if machine.is_alive:
            self._busy[machine] = None

    # The methods that asyncio needs of a loop

    def time(self) -> float:
        return self.now_us / 1e6

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.Handle:
        handle = _Handle(callback, args, context, self.world)
        self._make_ready(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.Handle:
        raise AssertionError("a simulation has no threads")

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        return self._call_at_us(self.now_us + max(0, round(delay * 1e6)), callback, args, context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        return self._call_at_us(round(when * 1e6), callback, args, context)

    def _call_at_us(
        self,
        when_us: int,
        callback: Callable[[Unpack[Ts]], object],
        args: tuple[*Ts],
        context: Context | None,
    ) -> events.TimerHandle:
        handle = _Handle(callback, args, context, self.world)
        self._number += 1
        heapq.heappush(self._timers, (when_us, self._number, handle))
        return handle

    def create_future(self) -> asyncio.Future[object]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, work: Coroutine[object, object, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(work, loop=self, name=name or "task", context=context)
        self._tasks.append(task)  # type: ignore[arg-type]
        if len(self._tasks) > 1000:
            self._tasks = [task for task in self._tasks if not task.done()]
        return task

    def start(self, work: Coroutine[object, object, None], context: Context) -> asyncio.Task[None]:
        """Start a task in the background: an exception in it is a failure."""
        task = self.create_task(work, context=context)

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.failures.append(error)

        task.add_done_callback(ended)
        return task

    def call_exception_handler(self, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.failures.append(error if isinstance(error, BaseException) else str(context))

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    async def shutdown_asyncgens(self) -> None: ...

    async def shutdown_default_executor(self) -> None: ...

    def close(self) -> None:
        """Forget the tasks of killed machines, and whatever else still waits."""
        self._timers.clear()
        self._busy.clear()
        for machine in (*self.machines, *self._killed):
            machine.ready.clear()
        self._killed.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.clear()
