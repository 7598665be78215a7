"""ListPartitionReassignments (key 46), served: 0. Null topics mean all. Only the active controller answers.

Kafka: KafkaApis.handleListPartitionReassignmentsRequest.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.broker.apis.named_partitions import NamedPartitions, named_partitions
from odradek.controller.loop_turns import in_turns, result_in_turns
from odradek.controller.model.acls import AclOperation
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.DESCRIBE)
    broker.spawn(ctx, request, _list(broker, ctx, request))


async def _list(broker: Services, ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> None:
    wanted: NamedPartitions[int] | None = None
    if request.topics is not None:
        wanted = await result_in_turns(named_partitions(Mapped(_split, request.topics), index))
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    found = await broker.controller.list_partition_reassignments(wanted)
    async for tp, assignment in in_turns(found.items()):
        topics.setdefault(tp.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=tp.partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
            )
        )
    answered = [OngoingTopicReassignment(name=name, partitions=parts) async for name, parts in in_turns(topics.items())]
    ctx.reply(ListPartitionReassignmentsResponse(topics=answered))


def _split(topic: ListPartitionReassignmentsTopics) -> tuple[str, Sequence[int]]:
    return topic.name, topic.partition_indexes
