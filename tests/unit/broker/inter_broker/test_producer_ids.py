"""Producer ids come from blocks; the next block is requested before the last one is used up."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TypeVar, cast

import pytest

from odradek.broker.inter_broker.producer_ids import FIRST_BLOCK_WAIT_MS, OwnBlocks, ProducerIdManager
from odradek.controller.tree.metadata_tree import NoNode
from odradek.controller.znodes.znodes import ProducerIdsBlock
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test

ResponseT = TypeVar("ResponseT", bound=Response)


class Allocator:
    """A controller that gives blocks of `size` ids; `run()` lets the spawned coroutines finish."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.allocated = 0
        self.failure: ErrorCode | Exception | None = None
        self.asked: list[tuple[AllocateProducerIdsRequest, int | None]] = []
        self.spawned: list[Coroutine[object, object, None]] = []
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.manager = ProducerIdManager(
            self,
            self.timer,
            self.spawned.append,
            broker_id=3,
            broker_epoch=lambda: 70 + len(self.asked),
            timeout_ms=900,
        )
        self.answers: list[int | ErrorCode] = []

    async def ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None, version: int | None = None
    ) -> ResponseT:
        assert version is None
        self.asked.append((cast("AllocateProducerIdsRequest", request), timeout_ms))
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is not None:
            return cast("ResponseT", AllocateProducerIdsResponse(error_code=self.failure))
        first = self.allocated * self.size
        self.allocated += 1
        return cast("ResponseT", AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=self.size))

    def run(self) -> None:
        while self.spawned:
            try:
                self.spawned.pop(0).send(None)
            except StopIteration:
                continue

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()

    def take(self, times: int = 1) -> list[int | ErrorCode]:
        before = len(self.answers)
        for _ in range(times):
            self.manager.next(self.answers.append)
        return self.answers[before:]


def test_first_request_waits_for_the_first_block() -> None:
    ids = Allocator()
    assert ids.take() == []
    ids.run()
    assert ids.answers == [0]


def test_first_requests_do_not_wait_long_for_a_block() -> None:
    ids = Allocator()
    ids.take(2)
    ids.advance(FIRST_BLOCK_WAIT_MS - 1)
    assert ids.answers == []
    ids.advance(1)
    assert ids.answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    assert ids.take() == []
    ids.advance(FIRST_BLOCK_WAIT_MS - 1)
    ids.run()
    ids.advance(FIRST_BLOCK_WAIT_MS)
    assert ids.answers[2:] == [0], "the first request for a block is answered"
    assert len(ids.asked) == 1


def test_ids_of_a_block_follow_each_other() -> None:
    ids = Allocator()
    ids.take(3)
    ids.run()
    assert ids.answers == [0, 1, 2]


def test_next_block_is_requested_at_nine_tenths() -> None:
    ids = Allocator(size=10)
    ids.take(1)
    ids.run()
    ids.take(7)
    assert not ids.spawned
    ids.take(1)
    assert len(ids.spawned) == 1
    ids.run()
    assert ids.take(3) == [9, 10, 11]


def test_client_comes_again_when_the_next_block_is_late() -> None:
    ids = Allocator(size=10)
    ids.take(1)
    ids.run()
    ids.take(9)
    assert ids.take(2) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    ids.run()
    assert ids.take() == [10]


@pytest.mark.parametrize("failure", [ErrorCode.STALE_BROKER_EPOCH, TimeoutError("no controller")])
def test_without_a_block_there_is_an_error_and_the_next_call_requests_one(failure: ErrorCode | Exception) -> None:
    ids = Allocator()
    ids.failure = failure
    ids.take()
    ids.run()
    assert ids.answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    ids.failure = None
    ids.take()
    ids.run()
    assert ids.answers[-1] == 0


def test_a_request_for_a_block_has_the_present_broker_epoch() -> None:
    ids = Allocator()
    ids.failure = ErrorCode.STALE_BROKER_EPOCH
    for _ in range(2):
        ids.take()
        ids.run()
    assert ids.asked == [
        (AllocateProducerIdsRequest(broker_id=3, broker_epoch=70), 900),
        (AllocateProducerIdsRequest(broker_id=3, broker_epoch=71), 900),
    ]


def test_no_id_is_given_twice() -> None:
    ids = Allocator(size=7)
    ids.take()
    for _ in range(500):
        ids.run()
        ids.take()
    given = [answer for answer in ids.answers if not isinstance(answer, ErrorCode)]
    assert len(given) == len(set(given))
    assert len(given) > 400


def test_waiting_clients_are_answered_when_the_allocation_fails() -> None:
    ids = Allocator()
    ids.failure = ValueError("a bug")
    ids.take()
    with pytest.raises(ValueError, match="a bug"):
        ids.run()
    assert ids.answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


@async_test
async def test_blocks_are_taken_from_the_metadata_by_the_broker_itself() -> None:
    taken: list[tuple[int, int]] = []

    async def next_block(broker_id: int, size: int) -> ProducerIdsBlock:
        taken.append((broker_id, size))
        if len(taken) > 1:
            raise NoNode("/latest_producer_id_block")
        return ProducerIdsBlock(broker_id, 5000, 5999)

    blocks = OwnBlocks(next_block)
    request = AllocateProducerIdsRequest(broker_id=3, broker_epoch=1)
    first = await blocks.ask(request, AllocateProducerIdsResponse, timeout_ms=1)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (ErrorCode.NONE, 5000, 1000)
    assert taken == [(3, 1000)]
    second = await blocks.ask(request, AllocateProducerIdsResponse, timeout_ms=1)
    assert second.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
