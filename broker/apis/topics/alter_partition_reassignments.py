"""AlterPartitionReassignments (key 45), served: 0. Null replicas cancel a reassignment.

Only the active controller answers (KIP-455). Another broker says so once, and names no partitions.

Kafka: KafkaApis.handleAlterPartitionReassignmentsRequest.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.broker.apis.named_partitions import AnsweredPartitions, NamedPartitions, named_partitions
from odradek.controller.loop_turns import result_in_turns
from odradek.controller.model.acls import AclOperation
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import KafkaError
    from odradek.protocol.topic_partition import TopicPartition


def handle(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    named = await result_in_turns(named_partitions(Mapped(_split, request.topics), attrgetter("partition_index")))
    outcomes = await broker.controller.alter_partition_reassignments(_targets(named))
    ctx.reply(AlterPartitionReassignmentsResponse(responses=AnsweredPartitions(named, outcomes, _topic, _result)))


def _split(topic: ReassignableTopic) -> tuple[str, Sequence[ReassignablePartition]]:
    return topic.name, topic.partitions


def _targets(
    named: NamedPartitions[ReassignablePartition],
) -> Iterator[tuple[TopicPartition, tuple[int, ...] | None]]:
    for topic_partition, partition in named.partitions():
        yield topic_partition, None if partition.replicas is None else tuple(partition.replicas)


def _topic(name: str, partitions: Sequence[ReassignablePartitionResponse]) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(name=name, partitions=partitions)


def _result(partition: ReassignablePartition, error: KafkaError | None) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=partition.partition_index, error_message=None)
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    return result
