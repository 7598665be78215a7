"""OffsetDelete (key 47), served: 0. Partitions that do not exist, or that the client may not read, are refused here.

Kafka: KafkaApis.handleOffsetDeleteRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized, require
from odradek.broker.apis.existing_partitions import split_by_existence
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetDeleteRequest) -> Steps:
    require(broker, ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.READ, ResourceType.TOPIC, names)
    existing, refused = yield from split_by_existence(broker, request.topics, authorized, _topic, _refusal)

    request.topics = yield from listed(
        OffsetDeleteRequestTopic(name=name, partitions=found) for name, found in existing
    )
    answers: list[OffsetDeleteResponse] = []
    yield from broker.group_coordinator.delete_offsets(group_context(ctx), request, answers.append)
    (response,) = answers
    if response.error_code == ErrorCode.NONE and refused is not None:  # a top-level error comes without partitions
        for topic in response.topics:
            for part in topic.partitions:
                refused.add(topic.name, part.partition_index, part.error_code)
                yield None
        response.topics = refused
    ctx.reply(response)


def _topic(name: str, refused: Sequence[OffsetDeleteResponsePartition]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(name=name, partitions=refused)


def _refusal(index: int, error: int) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=error)
