"""What one timer operation costs with a million timers pending, beside the two obvious alternatives.

    python -m tests.benchmarks.parts.bench_timer [--pending N] [--rounds N]

- wheel: `SystemTimer`, tick 1 ms, 20 buckets
- heap: (expiration, number, task) in a heap, cancelled tasks marked and dropped when they come up
- call_later: asyncio's own timers, on a loop that is advanced by hand

Delays are uniform up to a minute. `insert` adds all of them. `cancel` takes out a quarter in the order of insertion,
about as requests complete; `shuffled` another quarter in random order, which costs mostly cache misses. `expire` runs
the remaining half, moving the clock from deadline to deadline as the ticker does, and includes every demotion on the
way down. All three have a manual clock, so that only the data structures are compared. Nanoseconds per operation, the
best of the rounds; compare figures of one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import random
import time
from collections.abc import Callable
from typing import TypeVar

from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from odradek.timer.task import TimerTask

LONGEST_DELAY_MS = 60_000

Costs = tuple[float, ...]


class Idle(TimerTask):
    __slots__ = ()

    def run(self) -> None:
        pass


def measured(work: Callable[..., int], *arguments: list[int]) -> float:
    """Nanoseconds for each of the operations that `work` counts."""
    gc.collect()
    start = time.perf_counter_ns()
    operations = work(*arguments)
    return (time.perf_counter_ns() - start) / operations


TaskT = TypeVar("TaskT", bound="Idle | HeapTask")


def bench_tasks(
    tasks: list[TaskT],
    add: Callable[[TaskT], None],
    expire: Callable[[], int],
    in_order: list[int],
    shuffled: list[int],
) -> Costs:
    def insert() -> int:
        for task in tasks:
            add(task)
        return len(tasks)

    def cancel(victims: list[int]) -> int:
        for index in victims:
            tasks[index].cancel()
        return len(victims)

    return measured(insert), measured(cancel, in_order), measured(cancel, shuffled), measured(expire)


def bench_wheel(delays: list[int], in_order: list[int], shuffled: list[int]) -> Costs:
    clock = ManualClock()
    timer = SystemTimer(clock)

    def expire() -> int:
        fired = 0
        while (deadline_ms := timer.next_deadline_ms()) is not None:
            clock.advance(max(0, deadline_ms - clock.monotonic_ms()))
            fired += timer.advance()
        return fired

    return bench_tasks([Idle(delay_ms) for delay_ms in delays], timer.add, expire, in_order, shuffled)


class HeapTask:
    __slots__ = ("cancelled", "delay_ms")

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def run(self) -> None:
        pass


class HeapTimer:
    """A plain heap with lazy cancel."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.heap: list[tuple[int, int, HeapTask]] = []
        self.number = 0

    def add(self, task: HeapTask) -> None:
        self.number += 1
        heapq.heappush(self.heap, (self.clock.monotonic_ms() + task.delay_ms, self.number, task))

    def advance(self) -> int:
        now_ms = self.clock.monotonic_ms()
        heap = self.heap
        fired = 0
        while heap and heap[0][0] <= now_ms:
            task = heapq.heappop(heap)[2]
            if not task.cancelled:
                fired += 1
                task.run()
        return fired


def bench_heap(delays: list[int], in_order: list[int], shuffled: list[int]) -> Costs:
    clock = ManualClock()
    timer = HeapTimer(clock)

    def expire() -> int:
        fired = 0
        while timer.heap:
            clock.advance(timer.heap[0][0] - clock.monotonic_ms())
            fired += timer.advance()
        return fired

    return bench_tasks([HeapTask(delay_ms) for delay_ms in delays], timer.add, expire, in_order, shuffled)


class HandCrankedLoop(asyncio.SelectorEventLoop):
    """asyncio's loop with a clock that jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def run_timers(self) -> None:
        while self._scheduled:
            self.now = self._scheduled[0].when()
            self._run_once()


def bench_call_later(delays: list[int], in_order: list[int], shuffled: list[int]) -> Costs:
    loop = HandCrankedLoop()
    handles: list[asyncio.TimerHandle] = []

    def idle() -> None:
        pass

    def insert() -> int:
        for delay_ms in delays:
            handles.append(loop.call_later(delay_ms / 1000, idle))  # noqa: PERF401 - the same loop as the others
        return len(delays)

    def cancel(victims: list[int]) -> int:
        for index in victims:
            handles[index].cancel()
        return len(victims)

    def expire() -> int:
        loop.run_timers()
        return len(delays) - len(in_order) - len(shuffled)

    try:
        return measured(insert), measured(cancel, in_order), measured(cancel, shuffled), measured(expire)
    finally:
        loop.close()


CONTENDERS: dict[str, Callable[[list[int], list[int], list[int]], Costs]] = {
    "wheel": bench_wheel,
    "heap": bench_heap,
    "call_later": bench_call_later,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of timer operations with many timers pending")
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    dice = random.Random(39)
    delays = [dice.randint(1, LONGEST_DELAY_MS) for _ in range(arguments.pending)]
    shuffled = dice.sample(range(arguments.pending), arguments.pending // 2)
    in_order = sorted(shuffled[: len(shuffled) // 2])
    del shuffled[: len(in_order)]
    heading = "".join(f"{operation:>10}" for operation in ("insert", "cancel", "shuffled", "expire"))
    print(f"{f'{arguments.pending:,} pending, ns per operation':<37}{heading}")
    for name, bench in CONTENDERS.items():
        rounds = [bench(delays, in_order, shuffled) for _ in range(arguments.rounds)]
        best = [min(costs) for costs in zip(*rounds, strict=True)]
        print(f"{name:<37}" + "".join(f"{cost:>10.0f}" for cost in best), flush=True)


if __name__ == "__main__":
    main()
