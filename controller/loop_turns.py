"""Iteration with turns of the event loop in between, for long work in a coroutine.

Kafka does such work in its request handler threads and the controller's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Hashable, Iterable, Iterator
from typing import Final, TypeVar

from odradek.timer.sliced_work import SLICE_MS

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
KeyT = TypeVar("KeyT", bound=Hashable)

ITEMS_A_TURN: Final = 64
"""Items between two turns of the loop, for work of microseconds per item; 0.1 ms per item is still acceptable."""


async def in_turns(items: Iterable[ItemT], count: int = ITEMS_A_TURN) -> AsyncIterator[ItemT]:
    """The items, with a turn of the loop after every `count` items or `SLICE_MS`. They must not change meanwhile."""
    now_s = asyncio.get_running_loop().time
    deadline_s = now_s() + SLICE_MS / 1000
    for number, item in enumerate(items, 1):
        yield item
        if not number % count or now_s() >= deadline_s:
            await asyncio.sleep(0)
            deadline_s = now_s() + SLICE_MS / 1000


async def result_in_turns(work: Generator[None, None, ResultT]) -> ResultT:
    """The result of work in steps, with turns of the loop between them."""
    results: list[ResultT] = []

    def steps() -> Iterator[None]:
        results.append((yield from work))

    async for _ in in_turns(steps()):
        pass
    return results[0]


async def counted(items: Iterable[KeyT]) -> dict[KeyT, int]:
    """How often each item is there, with turns of the loop while they are counted."""
    found: dict[KeyT, int] = {}
    async for item in in_turns(items):
        found[item] = found.get(item, 0) + 1
    return found


async def repeated_in_turns(items: Collection[KeyT]) -> set[KeyT]:
    """The items that are there more than once; see `repeated`."""
    from odradek.timer.repeated_items import repeated  # no start needs it

    return await result_in_turns(repeated(items))


async def let_go(items: set[KeyT] | dict[KeyT, ItemT]) -> None:
    """Remove all items, with turns of the loop in between: 300,000 partitions that are freed at once take 110 ms."""

    def removed() -> Iterator[None]:
        while items:
            if isinstance(items, set):
                items.pop()
            else:
                items.popitem()
            yield

    async for _ in in_turns(removed()):
        pass


async def collected(items: Iterable[KeyT]) -> frozenset[KeyT]:
    """All items in a set, with turns of the loop while it is made."""
    found = set()
    async for item in in_turns(items):
        found.add(item)
    return frozenset(found)
