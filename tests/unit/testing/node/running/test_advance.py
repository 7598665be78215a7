from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.testing.node.running.advance import ADVANCE_MS_MAX, ROUNDS_MAX
from odradek.testing.node.running.running_broker import RunningBroker
from odradek.testing.node.settings import broker_settings
from odradek.timer.periodic import PeriodicTask

DAY_MS = 86_400_000


def with_broker(test: Callable[[RunningBroker], Awaitable[None]]) -> None:
    async def run() -> None:
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop())
        await broker.start()
        try:
            await test(broker)
        finally:
            await broker.stop()

    asyncio.run(run())


def test_what_is_due_happens_in_its_order_and_at_its_time_and_what_follows_from_it_too() -> None:
    async def test(broker: RunningBroker) -> None:
        timer, clock = broker.server.timer, broker.clock
        start_ms = clock.monotonic_ms()
        seen: list[tuple[str, int]] = []

        def see(name: str, then: Callable[[], object] = lambda: None) -> Callable[[], None]:
            def task() -> None:
                seen.append((name, clock.monotonic_ms() - start_ms))
                then()

            return task

        timer.schedule(3_000_000, see("third"))
        timer.schedule(1_000_000, see("first", lambda: timer.schedule(1_000_000, see("second"))))
        timer.schedule(4_000_000, see("later"))
        await broker.advance(3_500_000)
        assert [name for name, _ in seen] == ["first", "second", "third"]
        for (_, at_ms), expected_ms in zip(seen, (1_000_000, 2_000_000, 3_000_000), strict=True):
            assert 0 <= at_ms - expected_ms < 60_000
        assert clock.monotonic_ms() - start_ms >= 3_500_000

    with_broker(test)


def test_work_in_threads_that_a_task_begins_is_done_before_the_next_task() -> None:
    async def test(broker: RunningBroker) -> None:
        timer = broker.server.timer
        seen: list[str] = []
        pool = broker.server._machine.io_pool
        timer.schedule(1000, lambda: pool.submit(lambda: None, lambda _: seen.append("done")))
        timer.schedule(1900, lambda: seen.append("next"))  # not due yet when real time passes meanwhile
        await broker.advance(2000)
        assert seen == ["done", "next"]

    with_broker(test)


def counted_rounds(broker: RunningBroker) -> tuple[PeriodicTask, list[int]]:
    """A task that runs each 15 seconds, and when it ran, in milliseconds of the broker's clock."""
    rounds: list[int] = []
    task = PeriodicTask(broker.server.timer, "counted", 15_000, lambda: rounds.append(broker.clock.monotonic_ms()))
    task.start()
    return task, rounds


def test_rounds_are_further_apart_in_a_long_advance_and_the_last_is_at_its_end() -> None:
    async def test(broker: RunningBroker) -> None:
        task, rounds = counted_rounds(broker)
        end_ms = broker.clock.monotonic_ms() + 7 * DAY_MS
        await broker.advance(7 * DAY_MS)
        assert ROUNDS_MAX <= len(rounds) <= ROUNDS_MAX + 4
        assert abs(rounds[-1] - end_ms) < 60_000
        before = len(rounds)
        await broker.advance(60_000)
        assert before + 4 <= len(rounds) <= before + 5, "the interval is as before"
        task.cancel()

    with_broker(test)


def test_limits() -> None:
    async def test(broker: RunningBroker) -> None:
        await broker.advance(0)
        for ms in (-1, ADVANCE_MS_MAX + 1):
            with pytest.raises(ValueError, match="is advanced by 0 to"):
                await broker.advance(ms)
        await broker.advance(ADVANCE_MS_MAX)

    with_broker(test)


def test_the_last_round_comes_also_when_real_time_has_passed_the_end() -> None:
    async def test(broker: RunningBroker) -> None:
        timer, clock = broker.server.timer, broker.clock
        task, rounds = counted_rounds(broker)
        end_ms = clock.monotonic_ms() + 7 * DAY_MS
        timer.schedule(7 * DAY_MS - 1000, lambda: clock.advance(2000))  # as on a machine that is busy
        await broker.advance(7 * DAY_MS)
        assert rounds[-1] > end_ms
        task.cancel()

    with_broker(test)
