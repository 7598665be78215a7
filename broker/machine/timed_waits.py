"""Time limits and pauses by the broker's timer: `asyncio.timeout` and `asyncio.sleep` use the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.timer.system_timer import SystemTimer


@contextmanager
def deadline(timer: SystemTimer, timeout_ms: int, what: str) -> Iterator[None]:
    """Raises: TimeoutError at the await of the block that runs when the time is over; its message names `what`."""
    task = asyncio.current_task()
    assert task is not None, "a deadline outside a task"
    is_over = False

    def expire() -> None:
        nonlocal is_over
        is_over = True
        task.cancel()

    expiration = timer.schedule(timeout_ms, expire)
    try:
        yield
    except asyncio.CancelledError:
        if is_over and task.uncancel() <= 0:  # else the task was also cancelled from outside
            raise TimeoutError(f"{what} took more than {timeout_ms} ms") from None
        raise
    finally:
        expiration.cancel()


async def pause(timer: SystemTimer, delay_ms: int, *, until: asyncio.Future[None] | None = None) -> None:
    """Wait for `delay_ms`, but no longer than until the future `until` is done."""
    is_over = asyncio.Event()

    def end(_: object) -> None:
        is_over.set()

    expiration = timer.schedule(delay_ms, is_over.set)
    if until is not None:
        until.add_done_callback(end)
    try:
        await is_over.wait()
    finally:
        expiration.cancel()
        if until is not None:
            until.remove_done_callback(end)
