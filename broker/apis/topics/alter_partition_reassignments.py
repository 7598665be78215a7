"""AlterPartitionReassignments (key 45), served: 0. Null replicas cancel a reassignment.

Only the active controller answers (KIP-455).

Kafka: KafkaApis.handleAlterPartitionReassignmentsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import AclOperation
from odradek.protocol.codec.mapped import Zipped
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import KafkaError


def handle(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    topics = [topic async for topic in in_turns(request.topics) if topic.partitions]
    outcomes = await broker.controller.alter_partition_reassignments(_targets(topics))
    responses = []
    async for name, found in in_turns(outcomes.items()):
        partitions = Zipped(_result, tuple(found), tuple(found.values()))
        responses.append(ReassignableTopicResponse(name=name, partitions=partitions))
    ctx.reply(AlterPartitionReassignmentsResponse(responses=responses))


def _targets(topics: Sequence[ReassignableTopic]) -> Iterator[tuple[TopicPartition, tuple[int, ...] | None]]:
    for topic in topics:
        for part in topic.partitions:
            replicas = None if part.replicas is None else tuple(part.replicas)
            yield TopicPartition(topic.name, part.partition_index), replicas


def _result(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    result = ReassignablePartitionResponse(partition_index=index, error_message=None)
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    return result
