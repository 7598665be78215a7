"""AlterPartitionReassignments (key 45), served: 0. Null replicas cancel a reassignment.

Only the active controller answers (KIP-455).

Kafka: KafkaApis.handleAlterPartitionReassignmentsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import AclOperation
from odradek.protocol.codec.mapped import Pairs
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import KafkaError


def handle(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    async for topic in in_turns(request.topics):
        async for part in in_turns(topic.partitions):
            replicas = part.replicas
            targets[TopicPartition(topic.name, part.partition_index)] = None if replicas is None else tuple(replicas)
    topics: dict[str, Pairs[int, KafkaError | None, ReassignablePartitionResponse]] = {}
    outcomes = await broker.controller.alter_partition_reassignments(targets)
    async for tp, error in in_turns(outcomes.items()):
        if tp.topic not in topics:
            topics[tp.topic] = Pairs(_result)
        topics[tp.topic].add(tp.partition, error)
    ctx.reply(
        AlterPartitionReassignmentsResponse(
            responses=[
                ReassignableTopicResponse(name=name, partitions=found) async for name, found in in_turns(topics.items())
            ],
        )
    )


def _result(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=index, error_message=None)
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    return result
