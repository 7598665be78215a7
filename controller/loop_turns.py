"""Long work of a coroutine, with turns of the event loop in between.

Answers to the threads of Kafka that may compute as long as they like: request handlers and the controller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from typing import Final, TypeVar

from odradek.timer.sliced_work import SLICE_MS

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT", bound=Hashable)

ITEMS_A_TURN: Final = 64
"""Of work that takes microseconds for each; what takes a tenth of a millisecond still leaves others their turn."""


async def in_turns(items: Iterable[ItemT], count: int = ITEMS_A_TURN) -> AsyncIterator[ItemT]:
    """The items, with a turn of the loop after each `count`, or after `SLICE_MS`. They must not change meanwhile."""
    now_s = asyncio.get_running_loop().time
    deadline_s = now_s() + SLICE_MS / 1000
    for number, item in enumerate(items, 1):
        yield item
        if not number % count or now_s() >= deadline_s:
            await asyncio.sleep(0)
            deadline_s = now_s() + SLICE_MS / 1000


async def collected(items: Iterable[KeyT]) -> frozenset[KeyT]:
    """All of the items, with turns of the loop while they are made."""
    found = set()
    async for item in in_turns(items):
        found.add(item)
    return frozenset(found)
