from __future__ import annotations

import asyncio
from typing import cast

import pytest

from odradek.broker.inter_broker.to_controller import RETRY_BACKOFF_MS, NodeToControllerChannelManager
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tests.support.async_test import async_test
from tests.support.in_process.links import OWN_ID, FakeLinks, OwnAnswers

REQUEST_TIMEOUT_MS = 30_000
ANSWER = AllocateProducerIdsResponse(producer_id_start=7, producer_id_len=1)
NOT_CONTROLLER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)


class Asker:
    def __init__(self) -> None:
        self.links = FakeLinks()
        self.channel = NodeToControllerChannelManager(
            self.links.broker_links(), self.links.cache, self.links.clock, self.links.timer, REQUEST_TIMEOUT_MS
        )

    def ask(self, timeout_ms: int | None = None, number: int = 0) -> asyncio.Task[AllocateProducerIdsResponse]:
        request = AllocateProducerIdsRequest(broker_id=number)
        return asyncio.ensure_future(self.channel.ask(request, AllocateProducerIdsResponse, timeout_ms=timeout_ms))

    @property
    def ports(self) -> list[int]:
        return [port for port, _ in self.links.asked]


@async_test
async def test_the_controller_of_the_metadata_gets_a_common_version() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002, 3: 9003})
    asker.links.answer = lambda end_point, request: ANSWER
    assert await asker.ask() == ANSWER
    ((_, version, timeout_ms),) = asker.links.made[0].asked
    assert (asker.ports, version, timeout_ms) == ([9002], None, REQUEST_TIMEOUT_MS)


@async_test
async def test_without_a_controller_it_waits_until_the_metadata_names_one() -> None:
    asker = Asker()
    asked = asker.ask()
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert not asker.ports
    asker.links.know(3, {3: 9003})
    asker.links.answer = lambda end_point, request: ANSWER
    await asker.links.advance(RETRY_BACKOFF_MS - 1)
    assert not asker.ports
    await asker.links.advance(1)
    assert await asked == ANSWER


@async_test
async def test_not_controller_closes_the_link_and_reads_the_metadata_again() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002, 3: 9003})
    asker.links.answer = lambda end_point, request: ANSWER if end_point.port == 9003 else NOT_CONTROLLER
    asked = asker.ask()
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert asker.ports == [9002, 9002]
    assert asker.links.made[0].is_closed
    asker.links.know(3, {2: 9002, 3: 9003})
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert await asked == ANSWER
    assert asker.ports == [9002, 9002, 9003]


@async_test
async def test_not_controller_of_one_partition_repeats_the_whole_request() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    answers = [
        AlterPartitionResponse(
            topics=[ResponseTopicData(partitions=[ResponsePartitionData(error_code=ErrorCode.NOT_CONTROLLER)])]
        ),
        AlterPartitionResponse(
            topics=[ResponseTopicData(partitions=[ResponsePartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)])]
        ),
    ]
    asker.links.answer = lambda end_point, request: answers.pop(0)
    asked = asyncio.ensure_future(asker.channel.ask(AlterPartitionRequest(), AlterPartitionResponse, timeout_ms=None))
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert (await asked).topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


@async_test
async def test_a_connection_that_breaks_is_tried_again() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    asked = asker.ask()
    await asker.links.advance(RETRY_BACKOFF_MS)
    asker.links.know(2, {})
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert not asked.done()
    asker.links.know(2, {2: 9002})
    asker.links.answer = lambda end_point, request: ANSWER
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert await asked == ANSWER


@async_test
async def test_other_errors_are_answers() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    stale = AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    asker.links.answer = lambda end_point, request: stale
    assert await asker.ask() == stale


@async_test
async def test_a_request_waits_its_turn_even_behind_one_that_is_tried_again() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    first, second = asker.ask(number=1), asker.ask(number=2)
    await asker.links.advance(RETRY_BACKOFF_MS)
    asker.links.answer = lambda end_point, request: ANSWER
    await asker.links.advance(RETRY_BACKOFF_MS)
    await asyncio.gather(first, second)
    numbers = [cast("AllocateProducerIdsRequest", request).broker_id for _, request in asker.links.asked]
    assert numbers == sorted(numbers)
    assert set(numbers) == {1, 2}


@async_test
async def test_time_is_up_while_it_is_tried_again_and_no_attempt_may_take_longer() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    asked = asker.ask(timeout_ms=250)
    for _ in range(3):
        await asker.links.advance(RETRY_BACKOFF_MS)
    with pytest.raises(TimeoutError, match="AllocateProducerIdsRequest found no controller within 250 ms"):
        await asked
    assert len(asker.ports) == 3
    assert all(timeout_ms == 250 for _, _, timeout_ms in asker.links.made[0].asked)


@async_test
async def test_time_spent_behind_others_counts() -> None:
    asker = Asker()
    first, second = asker.ask(timeout_ms=None), asker.ask(timeout_ms=50, number=2)
    await asker.links.advance(RETRY_BACKOFF_MS)
    asker.links.know(2, {2: 9002})
    asker.links.answer = lambda end_point, request: ANSWER
    await asker.links.advance(RETRY_BACKOFF_MS)
    assert await first == ANSWER
    with pytest.raises(TimeoutError):
        await second


@async_test
async def test_the_controller_in_this_process_is_asked_without_a_connection() -> None:
    asker = Asker()
    asker.links.know(OWN_ID, {OWN_ID: 9001})
    own = OwnAnswers(lambda request: ANSWER)
    asker.links.own_link.serve(own.serve)
    assert await asker.ask() == ANSWER
    assert not asker.links.made


@async_test
async def test_closing_hangs_up() -> None:
    asker = Asker()
    asker.links.know(2, {2: 9002})
    asker.links.answer = lambda end_point, request: ANSWER
    await asker.ask()
    asker.channel.close()
    assert asker.links.made[0].is_closed
