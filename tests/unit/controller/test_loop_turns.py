"""Long work in a coroutine lets other callbacks of the loop run in between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator
from random import Random

from odradek.controller.loop_turns import ITEMS_A_TURN, collected, in_turns, let_go, repeated_in_turns, result_in_turns
from odradek.timer.sliced_work import SLICE_MS
from tests.support.async_test import async_test
from tests.support.simulation.environment.virtual_loop import VirtualLoop


@async_test
async def test_others_have_their_turn_in_the_middle() -> None:
    happened: list[object] = []

    async def work() -> None:
        async for item in in_turns(range(5), 2):
            assert item not in happened
            happened.append(item)

    async def other() -> None:
        for _ in range(3):
            happened.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(work(), other())
    assert happened == [0, 1, "other", 2, 3, "other", 4, "other"]


def test_others_have_their_turn_as_soon_as_an_item_has_taken_long() -> None:
    loop = VirtualLoop(Random(1))
    happened: list[str] = []

    async def work() -> None:
        async for item in in_turns("abcd"):
            happened.append(item)
            loop.now_us += (SLICE_MS - 1) * 1000

    async def other() -> None:
        happened.append("other")

    async def both() -> None:
        await asyncio.gather(work(), other())

    loop.run(both())
    assert happened == ["a", "b", "other", "c", "d"]


@async_test
async def test_what_is_repeated_is_found_in_turns() -> None:
    assert await repeated_in_turns([]) == set()
    assert await repeated_in_turns(["a", "b", "a"]) == {"a"}


@async_test
async def test_without_items_there_is_nothing_to_do() -> None:
    assert [item async for item in in_turns([])] == []


@async_test
async def test_what_is_collected_leaves_others_their_turn() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while not work.done():
            turns += 1
            await asyncio.sleep(0)

    work = asyncio.ensure_future(collected(iter(range(3 * ITEMS_A_TURN))))
    await other()
    assert await work == frozenset(range(3 * ITEMS_A_TURN))
    assert turns >= 3


@async_test
async def test_many_items_are_let_go_with_turns_of_others() -> None:
    items = set(range(3 * ITEMS_A_TURN))
    by_key = dict.fromkeys(items)
    left: list[int] = []

    async def other() -> None:
        while items:
            left.append(len(items) + len(by_key))
            await asyncio.sleep(0)

    observing = asyncio.ensure_future(other())
    await asyncio.sleep(0)
    await let_go(by_key)
    await let_go(items)
    await observing
    assert not by_key
    assert len(left) > 5
    assert all(before - after <= ITEMS_A_TURN for before, after in itertools.pairwise(left))


@async_test
async def test_the_result_of_work_in_steps_comes_after_turns_of_others() -> None:
    happened: list[str] = []

    def work() -> Generator[None, None, str]:
        for _ in range(ITEMS_A_TURN):
            yield
        happened.append("last step")
        return "result"

    asyncio.get_running_loop().call_soon(happened.append, "other")
    assert await result_in_turns(work()) == "result"
    assert happened == ["other", "last step"]
