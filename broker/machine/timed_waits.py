"""What coroutines wait for by the broker's own timer: `asyncio.timeout` and `asyncio.sleep` go by the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.timer.system_timer import SystemTimer


@contextmanager
def deadline(timer: SystemTimer, timeout_ms: int, what: str) -> Iterator[None]:
    """Raises: TimeoutError at the await that `what` was waiting in when the time was over."""
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
        if is_over and task.uncancel() <= 0:  # else somebody else has cancelled the task as well
            raise TimeoutError(f"{what} took more than {timeout_ms} ms") from None
        raise
    finally:
        expiration.cancel()


async def pause(timer: SystemTimer, delay_ms: int, *, until: asyncio.Future[None] | None = None) -> None:
    """Wait, and nothing else; no longer than until a future is done, if one is given."""
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
