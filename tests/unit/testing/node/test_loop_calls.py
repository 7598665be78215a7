from __future__ import annotations

import asyncio
import gc
from functools import partial

import pytest

from odradek.testing.errors import BrokerStopped
from odradek.testing.node.loop_calls import LoopCalls
from tests.support.async_test import async_test


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError(number)
    return 2 * number


async def _for_ever() -> None:
    await asyncio.Event().wait()


@async_test
async def test_a_call_has_the_result_or_the_error_of_the_coroutine() -> None:
    calls = LoopCalls(asyncio.get_running_loop())
    assert await asyncio.wrap_future(calls.submit(partial(_double, 2))) == 4
    with pytest.raises(ValueError, match="-1"):
        await asyncio.wrap_future(calls.submit(partial(_double, -1)))


@async_test
async def test_a_cancelled_call_is_cancelled_on_the_loop() -> None:
    calls = LoopCalls(asyncio.get_running_loop())
    begun = calls.submit(_for_ever)
    await asyncio.sleep(0)
    begun.cancel()
    calls.submit(_for_ever).cancel()
    while len(asyncio.all_tasks()) > 2:  # this test, and its time limit
        await asyncio.sleep(0)
    cancelled_on_loop = calls.submit(_for_ever)
    await asyncio.sleep(0)
    for task in calls._tasks:
        task.cancel()
    with pytest.raises(BrokerStopped):
        await asyncio.wrap_future(cancelled_on_loop)


def test_calls_end_with_the_loop_also_those_that_have_not_begun() -> None:
    """A coroutine that never begins is a warning, which fails this test."""
    loop = asyncio.new_event_loop()
    calls = LoopCalls(loop)
    begun = calls.submit(_for_ever)
    loop.run_until_complete(asyncio.sleep(0))
    waiting = [calls.submit(partial(_double, number)) for number in range(3)]
    cancelled = calls.submit(partial(_double, 3))
    cancelled.cancel()
    calls.close("the end")
    (task,) = asyncio.all_tasks(loop)
    task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    for future in (begun, *waiting, calls.submit(partial(_double, 4))):
        with pytest.raises(BrokerStopped, match="the end"):
            future.result(0)
    assert cancelled.cancelled()
    gc.collect()
