"""Sends ISR changes to the controller: all pending changes in one request, one request at a time.

A partition has at most one change here. A second one gets OPERATION_NOT_ATTEMPTED: the leader returns to the committed
ISR and proposes again later. A change stays until its partition is answered; it is sent again after an error of the
whole request, and when the answer omits the partition. Each request reads the broker epoch again, since it must have
changed after STALE_BROKER_EPOCH.

Kafka: AlterPartitionManager, DefaultAlterPartitionManager, AlterPartitionItem.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderRecoveryState
from odradek.coordinator.batched_requests import BatchedRequests
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from odradek.broker.inter_broker.ports import ToController
    from odradek.protocol.messages.alter_partition import ResponsePartitionData
    from odradek.timer.system_timer import SystemTimer

log = logging.getLogger(__name__)

RETRY_MS: Final = 50
"""Wait after an error of the whole request."""

LAST_VERSION_WITH_TOPIC_NAMES: Final = 1
FIRST_VERSION_WITH_EPOCHS: Final = 3

_RECOVERY_STATES: Final = frozenset(LeaderRecoveryState)


class AlterPartitionItem(NamedTuple):
    """One partition's proposal. `respond` gets the present state or the partition's error, perhaps within `submit`."""

    topic_partition: TopicPartition
    topic_id: bytes | None
    proposed: LeaderAndIsr
    respond: Callable[[LeaderAndIsr | ErrorCode], None]


class AlterPartition(Protocol):
    """The port for proposals of an ISR; `AlterPartitionManager` implements it."""

    def submit(self, item: AlterPartitionItem, /) -> None: ...


class AlterPartitionManager:
    """Implements `AlterPartition`. `spawn` runs a coroutine until the broker stops."""

    def __init__(
        self,
        to_controller: ToController,
        timer: SystemTimer,
        spawn: Callable[[Coroutine[object, object, None]], None],
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        metadata_version: MetadataVersion = LATEST_PRODUCTION,
    ) -> None:
        self._to_controller = to_controller
        self._timer = timer
        self._spawn = spawn
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._version = metadata_version.alter_partition_request_version
        self._unsettled: dict[TopicPartition, AlterPartitionItem] = {}
        """By name, not by id: also of a topic that was deleted and created again there is only one change."""
        self._requests: BatchedRequests[None, list[AlterPartitionItem], AlterPartitionResponse] = BatchedRequests(self)

    def submit(self, item: AlterPartitionItem, /) -> None:
        if item.topic_partition in self._unsettled:
            item.respond(ErrorCode.OPERATION_NOT_ATTEMPTED)
            return
        self._unsettled[item.topic_partition] = item
        self._requests.send(None)

    # Implements `BatchOwner`; there is one controller.

    def take_batch(self, _: None, /) -> list[AlterPartitionItem] | None:
        return list(self._unsettled.values()) or None

    def send_batch(
        self,
        _: None,
        items: list[AlterPartitionItem],
        respond: Callable[[AlterPartitionResponse | None], None],
        /,
    ) -> None:
        self._spawn(self._ask(items, respond))

    def batch_answered(self, items: list[AlterPartitionItem], response: AlterPartitionResponse | None, /) -> bool:
        is_settled = False
        try:
            is_settled = response is not None and self._take(items, response)
        finally:
            if not is_settled:
                self._timer.schedule(RETRY_MS, lambda: self._requests.send(None))
        return is_settled

    async def _ask(
        self, items: list[AlterPartitionItem], respond: Callable[[AlterPartitionResponse | None], None]
    ) -> None:
        response: AlterPartitionResponse | None = None
        try:
            has_ids = all(item.topic_id is not None for item in items)
            version = self._version if has_ids else min(self._version, LAST_VERSION_WITH_TOPIC_NAMES)
            request = make_request(items, self._broker_id, self._broker_epoch(), version)
            response = await self._to_controller.ask(request, AlterPartitionResponse, timeout_ms=None, version=version)
        finally:
            respond(response)

    def _take(self, items: list[AlterPartitionItem], response: AlterPartitionResponse) -> bool:
        """Answer the proposals that the response names; False when the whole request failed."""
        error = ErrorCode.for_code(response.error_code)
        if error != ErrorCode.NONE:
            log.warning("Controller answered AlterPartition with %r; sending it again", error)
            return False
        self._settle(items, answers_of(response, {item.topic_id: item.topic_partition.topic for item in items}))
        return True

    def _settle(
        self, items: Iterable[AlterPartitionItem], answers: Mapping[TopicPartition, LeaderAndIsr | ErrorCode]
    ) -> None:
        for item in items:
            answer = answers.get(item.topic_partition)
            if answer is None:
                log.warning(
                    "AlterPartition response omits partition %s; sending its change again", item.topic_partition
                )
                continue
            del self._unsettled[item.topic_partition]  # before the answer, which may submit a new proposal
            item.respond(answer)


def make_request(
    items: Iterable[AlterPartitionItem], broker_id: int, broker_epoch: int, version: int
) -> AlterPartitionRequest:
    """The request for these proposals. Broker epochs of replicas are -1: only KRaft controllers use them."""
    has_epochs = version >= FIRST_VERSION_WITH_EPOCHS
    topics: dict[str, RequestTopicData] = {}
    for item in items:
        name = item.topic_partition.topic
        topic = topics.setdefault(name, RequestTopicData(topic_name=name, topic_id=item.topic_id or ZERO_UUID))
        proposed = item.proposed
        topic.partitions.append(
            RequestPartitionData(
                partition_index=item.topic_partition.partition,
                leader_epoch=proposed.leader_epoch,
                new_isr=[] if has_epochs else list(proposed.isr),
                new_isr_with_epochs=[BrokerState(broker_id=member) for member in proposed.isr] if has_epochs else [],
                leader_recovery_state=proposed.leader_recovery_state if version >= 1 else LeaderRecoveryState.RECOVERED,
                partition_epoch=proposed.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def answers_of(
    response: AlterPartitionResponse, topics: Mapping[bytes | None, str]
) -> dict[TopicPartition, LeaderAndIsr | ErrorCode]:
    """The answer of each partition. `topics`: names of the request by topic id; the metadata cache may lack them."""
    return {
        TopicPartition(name, part.partition_index): _answer_of(part)
        for topic in response.topics
        if (name := topic.topic_name or topics.get(topic.topic_id))
        for part in topic.partitions
    }


def _answer_of(part: ResponsePartitionData) -> LeaderAndIsr | ErrorCode:
    if part.error_code != ErrorCode.NONE:
        return ErrorCode.for_code(part.error_code)
    if part.leader_recovery_state not in _RECOVERY_STATES:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return LeaderAndIsr(
        leader=part.leader_id,
        isr=tuple(part.isr),
        leader_epoch=part.leader_epoch,
        leader_recovery_state=LeaderRecoveryState(part.leader_recovery_state),
        partition_epoch=part.partition_epoch,
    )
