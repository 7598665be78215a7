from __future__ import annotations

import asyncio
from typing import cast

import pytest

from odradek.broker.inter_broker.controlled_shutdown import ControlledShutdown
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from tests.support.async_test import async_test
from tests.support.in_process.links import OWN_ID, FakeLinks, OwnAnswers, config

BACKOFF_MS = 5_000
DONE = ControlledShutdownResponse()
REMAINING = ControlledShutdownResponse(remaining_partitions=[RemainingPartition(topic_name="t")])


class Stopping:
    def __init__(self, **settings: str) -> None:
        self.links = FakeLinks()
        self.epochs = iter(range(100, 200))
        self.shutdown = ControlledShutdown(
            config({name.replace("_", "."): value for name, value in settings.items()}),
            self.links.broker_links(),
            self.links.cache,
            self.links.timer,
            broker_id=OWN_ID,
            broker_epoch=lambda: next(self.epochs),
        )

    def begin(self) -> asyncio.Task[bool]:
        return asyncio.ensure_future(self.shutdown.run())

    @property
    def ports(self) -> list[int]:
        return [port for port, _ in self.links.asked]


@async_test
async def test_the_controller_is_asked_in_version_3_with_the_broker_epoch() -> None:
    stopping = Stopping(request_timeout_ms="1234")
    stopping.links.know(2, {2: 9002})
    stopping.links.answer = lambda end_point, request: DONE
    assert await stopping.begin()
    request = ControlledShutdownRequest(broker_id=OWN_ID, broker_epoch=100)
    assert stopping.links.made[0].asked == [(request, 3, 1234)]


@pytest.mark.parametrize("answer", [REMAINING, ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER), None])
@async_test
async def test_the_request_is_repeated_until_no_partition_remains(
    answer: ControlledShutdownResponse | None,
) -> None:
    stopping = Stopping()
    stopping.links.know(2, {2: 9002})
    if answer is not None:
        stopping.links.answer = lambda end_point, request: answer
    asked = stopping.begin()
    await stopping.links.advance(BACKOFF_MS - 1)
    assert stopping.ports == [9002]
    stopping.links.know(3, {3: 9003})
    stopping.links.answer = lambda end_point, request: DONE
    await stopping.links.advance(1)
    assert await asked
    assert stopping.ports == [9002, 9003]
    epochs = [cast("ControlledShutdownRequest", request).broker_epoch for _, request in stopping.links.asked]
    assert epochs == [100, 101]


@pytest.mark.parametrize("times", [1, 3, 5])
@async_test
async def test_after_the_last_attempt_it_stops_in_any_case(times: int, caplog: pytest.LogCaptureFixture) -> None:
    stopping = Stopping(controlled_shutdown_max_retries=str(times))
    stopping.links.know(2, {2: 9002})
    stopping.links.answer = lambda end_point, request: REMAINING
    asked = stopping.begin()
    for _ in range(times - 1):
        await stopping.links.advance(BACKOFF_MS)
    assert not await asked
    assert len(stopping.ports) == times
    assert "Proceeding to do an unclean shutdown" in caplog.text


@async_test
async def test_without_a_controller_it_waits_for_one() -> None:
    stopping = Stopping()
    asked = stopping.begin()
    stopping.links.know(2, {})
    await stopping.links.advance(BACKOFF_MS)
    assert not stopping.links.made
    stopping.links.know(2, {2: 9002})
    stopping.links.answer = lambda end_point, request: DONE
    await stopping.links.advance(BACKOFF_MS)
    assert await asked


@async_test
async def test_a_broker_that_is_the_controller_asks_itself() -> None:
    stopping = Stopping()
    stopping.links.know(OWN_ID, {OWN_ID: 9001})
    stopping.links.own_link.serve(OwnAnswers(lambda request: DONE).serve)
    assert await stopping.begin()
    assert not stopping.links.made
