"""AlterPartition (KIP-497): a leader proposes a new ISR; the controller validates and writes it.

The checks for each partition, in this order; the first that applies decides:

| check | error |
| --- | --- |
| no leadership in the context | UNKNOWN_TOPIC_OR_PARTITION |
| partition epoch or leader epoch larger than in the context | NOT_CONTROLLER: there is a newer controller |
| leader epoch smaller | FENCED_LEADER_EPOCH |
| equal to the current state, partition epoch not larger | NONE with the current state: a repeated request |
| partition epoch smaller | INVALID_UPDATE_VERSION |
| RECOVERING with more than one replica, or RECOVERED to RECOVERING | INVALID_REQUEST |
| a replica on a broker that is not live or shuts down | INELIGIBLE_REPLICA, before v2 OPERATION_NOT_ATTEMPTED |

A valid proposal is written on condition that the partition epoch is still the same. The leader epoch stays, because the
leader does. All brokers get UpdateMetadata, and no LeaderAndIsr, for every partition of the request.

Kafka: KafkaController.processAlterPartition, KafkaController.tryProcessAlterPartition.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.states.partition_states import StateChangeFailed
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.controller.controllership import Controllership
    from odradek.controller.states.context import ControllerContext

logger = logging.getLogger("odradek.controller")


def validate_proposal(
    context: ControllerContext, partition: TopicPartition, proposed: LeaderAndIsr, version: int
) -> LeaderAndIsr | ErrorCode | None:
    """The error, the current state for a repeated request, or None for a valid proposal."""
    known = context.leadership(partition)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    current = known.leader_and_isr
    if proposed.partition_epoch > current.partition_epoch or proposed.leader_epoch > current.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposed.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if proposed.equals_allow_stale_partition_epoch(current):
        return current
    if proposed.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if proposed.leader_recovery_state is LeaderRecoveryState.RECOVERING and (
        len(proposed.isr) > 1 or current.leader_recovery_state is LeaderRecoveryState.RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    if not context.live_broker_ids.issuperset(proposed.isr):
        return ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
    return None


async def process_alter_partition(
    controllership: Controllership, request: AlterPartitionRequest, version: int
) -> tuple[AlterPartitionResponse, list[TopicPartition]]:
    """The response, and the partitions whose ISR was changed, which may complete a reassignment."""
    context = controllership.context
    if context.broker_epoch(request.broker_id) != request.broker_epoch:
        logger.info(
            "Refusing AlterPartition of broker %d: its broker epoch %d is stale",
            request.broker_id,
            request.broker_epoch,
        )
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), []
    response = AlterPartitionResponse()
    proposals = await _proposals(controllership, request, version, response)
    results: dict[TopicPartition, LeaderAndIsr | ErrorCode] = {}
    to_write: dict[TopicPartition, LeaderAndIsr] = {}
    async for partition, proposed in in_turns(proposals.items()):
        result = validate_proposal(context, partition, proposed, version)
        if result is None:
            to_write[partition] = proposed
        else:
            results[partition] = result
    updates = await controllership.state_nodes.update_partition_states(to_write)
    async for partition, written in in_turns(updates.finished.items()):
        if isinstance(written, StateChangeFailed):
            logger.error("Failed to update ISR for partition %s: %s", partition, written)
            results[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            results[partition] = written
            context.put_leadership(partition, LeaderIsrAndControllerEpoch(written, context.epoch))
    for partition in updates.to_retry:
        results[partition] = ErrorCode.INVALID_UPDATE_VERSION
    await controllership.send_update_metadata_to_all(proposals)
    await _add_results(controllership, response, results, by_id=version > 1)
    return response, [partition for partition, result in results.items() if isinstance(result, LeaderAndIsr)]


async def _proposals(
    controllership: Controllership, request: AlterPartitionRequest, version: int, response: AlterPartitionResponse
) -> dict[TopicPartition, LeaderAndIsr]:
    """The proposed states; topics with unknown ids get their error in `response`."""
    proposals: dict[TopicPartition, LeaderAndIsr] = {}
    for topic in request.topics:
        name = controllership.context.topic_names.get(topic.topic_id) if version > 1 else topic.topic_name
        if name is None:
            unknown = [
                ResponsePartitionData(partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
                for partition in topic.partitions
            ]
            response.topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=unknown))
            continue
        async for partition in in_turns(topic.partitions):
            topic_partition = TopicPartition(name, partition.partition_index)
            proposals[topic_partition] = _proposal(request.broker_id, partition, version)
    return proposals


def _proposal(broker_id: int, partition: RequestPartitionData, version: int) -> LeaderAndIsr:
    isr = [state.broker_id for state in partition.new_isr_with_epochs] if version >= 3 else partition.new_isr
    return LeaderAndIsr(
        leader=broker_id,
        isr=tuple(isr),
        leader_epoch=partition.leader_epoch,
        leader_recovery_state=LeaderRecoveryState(partition.leader_recovery_state),
        partition_epoch=partition.partition_epoch,
    )


async def _add_results(
    controllership: Controllership,
    response: AlterPartitionResponse,
    results: dict[TopicPartition, LeaderAndIsr | ErrorCode],
    *,
    by_id: bool,
) -> None:
    topics: dict[str, ResponseTopicData] = {}
    async for partition, result in in_turns(results.items()):
        topic = topics.get(partition.topic)
        if topic is None:
            topic = (
                ResponseTopicData(topic_id=controllership.context.topic_ids.get(partition.topic, ZERO_UUID))
                if by_id
                else ResponseTopicData(topic_name=partition.topic)
            )
            topics[partition.topic] = topic
            response.topics.append(topic)
        if isinstance(result, LeaderAndIsr):
            answer = ResponsePartitionData(
                partition_index=partition.partition,
                leader_id=result.leader,
                leader_epoch=result.leader_epoch,
                isr=list(result.isr),
                leader_recovery_state=int(result.leader_recovery_state),
                partition_epoch=result.partition_epoch,
            )
        else:
            answer = ResponsePartitionData(partition_index=partition.partition, error_code=result)
        topic.partitions.append(answer)
