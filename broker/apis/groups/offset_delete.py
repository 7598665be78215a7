"""OffsetDelete (key 47), served: 0. Partitions that do not exist are refused here.

Kafka: KafkaApis.handleOffsetDeleteRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.existing_partitions import add_refusals, split_by_existence
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import in_slices
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetDeleteRequest) -> Steps:
    existing, unknown = yield from split_by_existence(broker, request.topics, _unknown)

    def respond(response: OffsetDeleteResponse) -> None:
        if response.error_code == ErrorCode.NONE:  # a top-level error comes without partitions
            response.topics += [
                OffsetDeleteResponseTopic(name=n, partitions=p) for n, p in add_refusals(response.topics, unknown)
            ]
        ctx.reply(response)

    request.topics = [OffsetDeleteRequestTopic(name=name, partitions=found) for name, found in existing]
    broker.group_coordinator.delete_offsets(group_context(ctx), request, respond)


def _unknown(index: int) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
