"""ISR changes on their way to the controller: everything that is pending goes out together, one request at a time.

A partition has one change here at most; a second one is refused with OPERATION_NOT_ATTEMPTED, so that its leader goes
back to what is committed and proposes again when the first is settled. A change stays until its partition is answered:
errors of the whole request, and answers that leave a partition out, send it again. The broker epoch is asked for anew
each time, since after STALE_BROKER_EPOCH it is what has to change.

Kafka: DefaultAlterPartitionManager.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

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


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    """One partition's proposal. `respond` gets the state that holds now or the partition's error, perhaps before the
    proposal is handed over.
    """

    topic_partition: TopicPartition
    topic_id: bytes | None
    proposed: LeaderAndIsr
    respond: Callable[[LeaderAndIsr | ErrorCode], None]


class AlterPartition(Protocol):
    """Where a leader proposes an ISR; `AlterPartitionManager` is the real one."""

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
        """By name, not by id: of a topic that was deleted and made again one change can be here, too."""
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
        """Settle what is answered; whether the request as a whole went well."""
        error = ErrorCode.for_code(response.error_code)
        if error != ErrorCode.NONE:
            log.warning("Controller answered AlterPartition %r", error)
            return False
        self._settle(items, answers_of(response, {item.topic_id: item.topic_partition.topic for item in items}))
        return True

    def _settle(
        self, items: Iterable[AlterPartitionItem], answers: Mapping[TopicPartition, LeaderAndIsr | ErrorCode]
    ) -> None:
        for item in items:
            answer = answers.get(item.topic_partition)
            if answer is None:
                log.warning("Partition %s was sent but is not in the answer", item.topic_partition)
                continue
            del self._unsettled[item.topic_partition]  # before it is told, for it may propose again
            item.respond(answer)


def make_request(
    items: Iterable[AlterPartitionItem], broker_id: int, broker_epoch: int, version: int
) -> AlterPartitionRequest:
    """Epochs of replicas are for controllers of KRaft: here they are -1."""
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
    """Each partition's answer. `topics`: names by id, as they were sent; the metadata cache may not know them yet."""
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
