"""How much work a coroutine does before it lets the loop turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


async def most_in_a_turn(work: Coroutine[object, object, object], amount: Callable[[], int]) -> int:
    """Run the work; returns the most by which `amount` grew between two turns of the event loop."""
    task = asyncio.ensure_future(work)
    before, most = amount(), 0
    while not task.done():
        await asyncio.sleep(0)
        before, most = amount(), max(most, amount() - before)
    await task
    return most
