from __future__ import annotations

import asyncio

import pytest

from odradek.broker.machine.timed_waits import Deadline, pause
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Waiter:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait(self, timeout_ms: int) -> str:
        with Deadline(self.timer, timeout_ms, lambda: "The answer"):
            return await self.answer

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


@async_test
async def test_block_that_ends_in_time_is_not_cancelled() -> None:
    waiter = Waiter()
    task = asyncio.ensure_future(waiter.wait(100))
    await turns()
    waiter.advance(99)
    waiter.answer.set_result("yes")
    assert await task == "yes"
    assert waiter.timer.next_deadline_ms() is None, "nothing keeps waiting"


@async_test
async def test_block_that_takes_too_long_is_cancelled_and_named() -> None:
    waiter = Waiter()
    task = asyncio.ensure_future(waiter.wait(100))
    await turns()
    waiter.advance(101)
    with pytest.raises(TimeoutError, match=r"The answer took more than 100 ms"):
        await task
    assert task.cancelling() == 0


@async_test
async def test_a_cancellation_from_outside_stays_one() -> None:
    waiter = Waiter()
    task = asyncio.ensure_future(waiter.wait(100))
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@async_test
async def test_a_cancellation_from_outside_wins_over_the_end_of_the_time() -> None:
    waiter = Waiter()
    task = asyncio.ensure_future(waiter.wait(100))
    await turns()
    waiter.advance(101)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@async_test
async def test_of_two_deadlines_only_the_expired_one_raises() -> None:
    waiter = Waiter()

    async def nested() -> str:
        with Deadline(waiter.timer, 1_000, lambda: "All of it"):
            try:
                return await waiter.wait(100)
            except TimeoutError as error:
                await turns()
                return str(error)

    task = asyncio.ensure_future(nested())
    await turns()
    waiter.advance(101)
    assert await task == "The answer took more than 100 ms"


@async_test
async def test_a_pause_is_over_when_its_time_is() -> None:
    waiter = Waiter()
    task = asyncio.ensure_future(pause(waiter.timer, 100))
    await turns()
    waiter.advance(99)
    await turns()
    assert not task.done()
    waiter.advance(1)
    await task
    assert waiter.timer.next_deadline_ms() is None


@pytest.mark.parametrize("is_done_before", [False, True])
@async_test
async def test_a_pause_is_no_longer_than_until_a_future_is_done(is_done_before: bool) -> None:
    waiter = Waiter()
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if is_done_before:
        closed.set_result(None)
    task = asyncio.ensure_future(pause(waiter.timer, 100, until=closed))
    await turns()
    if not is_done_before:
        assert not task.done()
        closed.set_result(None)
    await task
    assert waiter.timer.next_deadline_ms() is None, "nothing keeps waiting"
