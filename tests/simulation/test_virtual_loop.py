"""Virtual time: the clock jumps, machines are paused and killed, and the seed decides which goes first."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from random import Random

import pytest

from tests.support.simulation.environment.virtual_loop import EPOCH_MS, Machine, Stuck, VirtualClock, VirtualLoop


def loop_and_machines(seed: int = 1) -> tuple[VirtualLoop, Machine, Machine]:
    loop = VirtualLoop(Random(seed))
    return loop, loop.add_machine("one"), loop.add_machine("other")


async def say(log: list[str], *words: str) -> None:
    for word in words:
        log.append(word)
        await asyncio.sleep(0)


def test_time_passes_only_when_nothing_is_to_be_done() -> None:
    loop = VirtualLoop(Random(1))
    clock = VirtualClock(loop)

    async def sleep() -> None:
        await asyncio.sleep(3_600)

    loop.run(sleep(), within_ms=10_000_000)
    assert (clock.monotonic_ms(), clock.time_ms()) == (3_600_000, EPOCH_MS + 3_600_000)


def test_a_time_out_is_on_time() -> None:
    loop = VirtualLoop(Random(1))

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 1.5)

    loop.run(wait())
    assert loop.now_us == 1_500_000


def test_what_begins_on_a_machine_stays_there_and_in_order() -> None:
    orders = set()
    for seed in range(20):
        loop, one, other = loop_and_machines(seed)
        log: list[str] = []
        tasks = [
            loop.create_task(say(log, "a", "b"), context=one.context.copy()),
            loop.create_task(say(log, "1", "2"), context=other.context.copy()),
        ]
        loop.run_until(lambda tasks=tasks: all(task.done() for task in tasks), 1)  # type: ignore[misc]
        assert [word for word in log if word.isalpha()] == ["a", "b"]
        assert [word for word in log if word.isdigit()] == ["1", "2"]
        orders.add("".join(log))
    assert len(orders) > 2


def test_a_paused_machine_goes_on_where_it_was() -> None:
    loop, one, other = loop_and_machines()
    log: list[str] = []
    one.is_paused = True
    loop.create_task(say(log, "a", "b"), context=one.context.copy())
    loop.create_task(say(log, "1", "2"), context=other.context.copy())
    loop.run_until(lambda: False, 1_000)
    assert log == ["1", "2"]
    one.is_paused = False
    loop.run_until(lambda: False, 2_000)
    assert log == ["1", "2", "a", "b"]


def test_nothing_of_a_killed_machine_runs_any_more() -> None:
    loop, one, _ = loop_and_machines()
    log: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            log.append("cleaned up")

    loop.create_task(work(), context=one.context.copy())
    loop.run_until(lambda: False, 500_000)
    loop.kill(one)
    loop.run_until(lambda: False, 5_000_000)
    assert log == []
    loop.close()


def test_a_killed_machine_does_not_clean_up_when_its_memory_is_freed() -> None:
    loop, one, _ = loop_and_machines()
    log: list[str] = []

    def steps() -> Iterator[None]:
        try:
            yield
            yield
        finally:
            log.append("cleaned up")

    def go_on(work: Iterator[None]) -> None:
        next(work)

    ready, late = steps(), steps()
    for work in (ready, late):
        next(work)
    one.context.run(loop.call_soon, go_on, ready)
    one.context.run(loop.call_later, 1, go_on, late)
    del ready, late, work
    loop.kill(one)
    loop.run_until(lambda: False, 5_000_000)
    gc.collect()
    assert log == []


def test_a_machine_that_kills_itself_ends_with_the_callback() -> None:
    loop, one, _ = loop_and_machines()
    log: list[str] = []
    one.context.run(loop.call_soon, loop.kill, one)
    one.context.run(loop.call_soon, log.append, "after the kill")
    loop.run_until(lambda: False, 1_000)
    assert log == []


def test_an_endless_loop_is_told() -> None:
    loop = VirtualLoop(Random(1))

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck):
        loop.run(spin())
    loop.close()


def test_what_nobody_catches_is_a_failure() -> None:
    loop = VirtualLoop(Random(1))
    loop.call_soon(lambda: 1 // 0)
    loop.run_until(lambda: False, 1)
    assert isinstance(loop.failures[0], ZeroDivisionError)
