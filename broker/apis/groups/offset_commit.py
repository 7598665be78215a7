"""OffsetCommit (key 8), served: 0-9.

v0 keeps offsets under /consumers in the metadata tree, later versions in ``__consumer_offsets``. v1: generation and
member id, commit time. v2-4: a retention time. v6: leader epochs. v7: static members. v9: the new consumer protocol's
errors.

Partitions that do not exist are refused here; the coordinator gets the others.

Kafka: KafkaApis.handleOffsetCommitRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.existing_partitions import add_refusals, split_by_existence
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import in_slices
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetCommitRequest) -> Steps:
    existing, unknown = yield from split_by_existence(broker, request.topics, _unknown)

    def respond(response: OffsetCommitResponse) -> None:
        response.topics += [
            OffsetCommitResponseTopic(name=n, partitions=p) for n, p in add_refusals(response.topics, unknown)
        ]
        ctx.reply(response)

    if not existing:
        respond(OffsetCommitResponse())
        return
    request.topics = [OffsetCommitRequestTopic(name=name, partitions=found) for name, found in existing]
    yield from broker.group_coordinator.commit_offsets(group_context(ctx), request, respond)


def _unknown(index: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def error_response(
    request: OffsetCommitRequest, version: int, code: ErrorCode, message: str | None
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
