"""Coroutines that run beside the requests."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Coroutine

import pytest

from odradek.broker.setup.background_work import BackgroundWork


class Steps:
    """Coroutines that note how far they came."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def inner(self) -> None:
        self.seen.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.seen.append("cancelled")
            raise

    async def outer(self, work: Coroutine[object, object, None]) -> None:
        await work


async def turn() -> None:
    """Run what is ready, and what that makes ready."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_work_that_has_not_begun_is_cancelled_at_its_first_wait() -> None:
    steps = Steps()

    async def scenario() -> None:
        background = BackgroundWork(asyncio.get_running_loop())
        background.start(steps.outer(steps.inner()))
        await background.cancel()
        await turn()

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that was never awaited
        asyncio.run(scenario())
        gc.collect()
    assert steps.seen == ["begun", "cancelled"]


def test_work_that_waits_is_cancelled() -> None:
    steps = Steps()

    async def scenario() -> None:
        background = BackgroundWork(asyncio.get_running_loop())
        background.start(steps.inner())
        await turn()
        assert steps.seen == ["begun"]
        await background.cancel()
        await turn()

    asyncio.run(scenario())
    assert steps.seen == ["begun", "cancelled"]


def test_work_that_is_started_after_the_end_is_cancelled_at_its_first_wait() -> None:
    steps = Steps()

    async def scenario() -> None:
        background = BackgroundWork(asyncio.get_running_loop())
        await background.cancel()
        background.start(steps.outer(steps.inner()))
        await turn()

    asyncio.run(scenario())
    assert steps.seen == ["begun", "cancelled"]


def test_an_error_is_logged_and_ends_one_coroutine_alone(caplog: pytest.LogCaptureFixture) -> None:
    steps = Steps()

    async def fail() -> None:
        raise ValueError("reason")

    async def scenario() -> None:
        background = BackgroundWork(asyncio.get_running_loop())
        background.start(fail())
        background.start(steps.inner())
        await turn()
        assert steps.seen == ["begun"]
        await background.cancel()
        await turn()

    asyncio.run(scenario())
    (record,) = caplog.records
    assert (record.name, record.message) == ("odradek.broker.setup.background_work", "Error in background work")
    assert record.exc_info is not None
