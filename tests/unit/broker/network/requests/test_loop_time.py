from __future__ import annotations

import asyncio

import pytest

from odradek.broker.network.requests.loop_time import TimedCoroutine, timed_steps
from odradek.broker.network.requests.request import RequestTimes
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import Steps
from tests.support.async_test import async_test
from tests.unit.broker.network.requests.test_request_observer import Recorder

MS = 1_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def times(clock: ManualClock) -> RequestTimes:
    times = RequestTimes(Recorder(), clock.monotonic_ns, clock.monotonic_ns())
    times.end_step()
    return times


def test_steps_count_and_the_turns_of_others_do_not(clock: ManualClock, times: RequestTimes) -> None:
    def work() -> Steps:
        clock.advance(1)
        yield None
        clock.advance(2)

    steps = timed_steps(times, work())
    next(steps)
    clock.advance(100)
    with pytest.raises(StopIteration):
        next(steps)
    assert times.loop_ns == 3 * MS


def test_a_step_within_a_step_counts_once(clock: ManualClock, times: RequestTimes) -> None:
    def work() -> Steps:
        clock.advance(1)
        yield None

    def outer() -> Steps:
        yield from timed_steps(times, work())

    list(timed_steps(times, outer()))
    assert times.loop_ns == 1 * MS


def test_an_exception_of_the_work_is_raised_and_its_time_counts(clock: ManualClock, times: RequestTimes) -> None:
    def work() -> Steps:
        yield None
        clock.advance(5)
        raise ValueError("broken")

    steps = timed_steps(times, work())
    next(steps)
    with pytest.raises(ValueError, match="broken"):
        next(steps)
    assert times.loop_ns == 5 * MS


def test_steps_that_are_given_up_close_the_work(times: RequestTimes) -> None:
    closed: list[bool] = []

    def work() -> Steps:
        try:
            yield None
        finally:
            closed.append(True)

    steps = timed_steps(times, work())
    next(steps)
    steps.close()
    assert closed == [True]


@async_test
async def test_a_coroutine_counts_between_its_awaits() -> None:
    clock = ManualClock(1_000)
    times = RequestTimes(Recorder(), clock.monotonic_ns, clock.monotonic_ns())
    times.end_step()
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    got: list[int] = []

    async def work() -> None:
        clock.advance(1)
        got.append(await gate)
        clock.advance(2)

    async def run() -> None:
        await TimedCoroutine(times, work())

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0)
    clock.advance(100)
    gate.set_result(7)
    await task
    assert got == [7]
    assert times.loop_ns == 3 * MS


@async_test
async def test_errors_and_cancellations_reach_the_coroutine() -> None:
    clock = ManualClock(1_000)
    times = RequestTimes(Recorder(), clock.monotonic_ns, clock.monotonic_ns())
    times.end_step()
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def run() -> None:
        await TimedCoroutine(times, work())

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
