"""Producer ids for idempotent producers, from blocks that the controller allocates.

A block holds 1000 ids. The next block is requested when 90 % of this one are used. A client that needs an id while none
is left gets COORDINATOR_LOAD_IN_PROGRESS and retries. Before the first block clients wait for it, but not for long:
unlike in Apache Kafka, the first producer after the start of a broker needs no retry.

Kafka: ProducerIdManager, RPCProducerIdManager, ZkProducerIdManager.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar, cast

from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import PRODUCER_IDS_BLOCK_SIZE
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from odradek.broker.inter_broker.ports import ToController
    from odradek.controller.znodes.znodes import ProducerIdsBlock
    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

ResponseT = TypeVar("ResponseT", bound=Response)

log = logging.getLogger(__name__)

PREFETCH_THRESHOLD = 0.90

FIRST_BLOCK_WAIT_MS = 1_000
"""Longer than a controller needs, and much shorter than the time-outs of clients: there may be no controller."""

OnProducerId = Callable[[int | ErrorCode], None]


class ProducerIdManager:
    """`spawn` runs a coroutine until the broker stops."""

    def __init__(
        self,
        to_controller: ToController,
        timer: SystemTimer,
        spawn: Callable[[Coroutine[object, object, None]], None],
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._to_controller = to_controller
        self._timer = timer
        self._spawn = spawn
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self._next_id = 0
        self._end = 0  # exclusive
        self._prefetch_at = 0
        self._next_block: tuple[int, int] | None = None
        self._allocating = False
        self._waiting: list[OnProducerId] = []
        self._wait_end: TimerTask | None = None

    def next(self, respond: OnProducerId) -> None:
        """Call `respond` with an unused id, or with a retriable error."""
        if self._next_id >= self._end:
            self._take_next_block()
        if self._next_id >= self._end:
            first_of_all = self._end == 0
            self._request_block()
            if first_of_all:
                self._waiting.append(respond)
                if self._wait_end is None:
                    self._wait_end = self._timer.schedule(FIRST_BLOCK_WAIT_MS, self._answer_waiting)
            else:
                respond(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        producer_id = self._next_id
        self._next_id += 1
        if self._next_id >= self._prefetch_at and self._next_block is None:
            self._request_block()
        respond(producer_id)

    def _take_next_block(self) -> None:
        if self._next_block is not None:
            first, length = self._next_block
            self._next_block = None
            self._next_id = first
            self._end = first + length
            self._prefetch_at = first + int(length * PREFETCH_THRESHOLD)

    def _request_block(self) -> None:
        if not self._allocating:
            self._allocating = True
            self._spawn(self._fetch_block())

    async def _fetch_block(self) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            block = await self._to_controller.ask(request, AllocateProducerIdsResponse, timeout_ms=self._timeout_ms)
            if block.error_code == ErrorCode.NONE:
                self._next_block = block.producer_id_start, block.producer_id_len
            else:
                log.warning("The controller allocated no block of producer ids: error %d", block.error_code)
        except TimeoutError as error:
            log.warning("The controller allocated no block of producer ids: %s", error)
        finally:
            self._allocating = False
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        if self._wait_end is not None:
            self._wait_end.cancel()
            self._wait_end = None
        waiting, self._waiting = self._waiting, []
        for respond in waiting:
            if self._next_block is None and self._next_id >= self._end:
                respond(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            else:
                self.next(respond)


class OwnBlocks:
    """Allocates blocks in the metadata tree, for an inter-broker protocol older than 3.0, which has no
    AllocateProducerIds. Implements `ToController` for this request. Kafka: ZkProducerIdManager.
    """

    def __init__(self, next_block: Callable[[int, int], Awaitable[ProducerIdsBlock]]) -> None:
        self._next_block = next_block

    async def ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None, version: int | None = None
    ) -> ResponseT:
        assert isinstance(request, AllocateProducerIdsRequest)
        try:
            block = await self._next_block(request.broker_id, PRODUCER_IDS_BLOCK_SIZE)
        except (BadZnode, KafkaError, TreeError) as error:
            log.warning("Could not allocate a block of producer ids in the metadata: %r", error)
            return cast("ResponseT", AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        return cast(
            "ResponseT", AllocateProducerIdsResponse(producer_id_start=block.block_start, producer_id_len=block.size)
        )
