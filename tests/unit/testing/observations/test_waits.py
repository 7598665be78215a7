from __future__ import annotations

import asyncio

import pytest

from odradek.testing.errors import BrokerStopped
from odradek.testing.observations.waits import Change, Waits
from tests.support.async_test import async_test


@async_test
async def test_what_is_there_is_found_without_a_wait() -> None:
    assert await Waits().until(lambda: 1, (Change.GROUPS,), 0) == 1


@async_test
async def test_a_change_wakes_the_wait() -> None:
    waits, state = Waits(), {"value": 0}
    waiting = asyncio.ensure_future(waits.until(lambda: state["value"] or None, (Change.GROUPS, Change.METADATA), 10))
    await asyncio.sleep(0)
    assert waits.waiting_count == 1
    waits.announce(Change.REQUESTS)
    waits.announce(Change.GROUPS)
    state["value"] = 7  # the change goes on after it was announced
    assert await waiting == 7
    assert waits.waiting_count == 0
    assert waits.count(Change.GROUPS) == 1


@async_test
async def test_a_change_that_is_not_wanted_does_not_end_the_wait() -> None:
    waits, looks = Waits(), []

    def look() -> bool | None:
        looks.append(1)
        return True if len(looks) == 3 else None

    waiting = asyncio.ensure_future(waits.until(look, (Change.GROUPS,), 10))
    for _ in range(2):
        await asyncio.sleep(0)
        assert not waiting.done()
        waits.announce(Change.GROUPS)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert await waiting is True


@async_test
async def test_the_time_is_over() -> None:
    waits = Waits()
    assert await waits.until(lambda: None, (Change.GROUPS,), 0) is None
    assert await waits.until(lambda: None, (Change.GROUPS,), 0.001) is None
    assert waits.waiting_count == 0


@async_test
async def test_a_close_ends_waits_and_refuses_new_ones() -> None:
    waits = Waits()
    waiting = asyncio.ensure_future(waits.until(lambda: None, (Change.GROUPS,), 10))
    await asyncio.sleep(0)
    waits.close("stopped")
    with pytest.raises(BrokerStopped, match="stopped"):
        await waiting
    with pytest.raises(BrokerStopped, match="stopped"):
        await waits.until(lambda: None, (Change.GROUPS,), 10)
