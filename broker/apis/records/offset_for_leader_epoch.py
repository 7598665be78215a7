"""OffsetForLeaderEpoch (key 23), served: 0-4.

v1: the epoch in the response. v2: the client's leader epoch is checked. v3: replica id, -2 for a debugging reader of
any replica.

Kafka: KafkaApis.handleOffsetForLeaderEpochRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.services import in_slices
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetForLeaderEpochRequest) -> Steps:
    topics = []
    for topic in request.topics:
        found = []
        for part in topic.partitions:
            found.append(_end_offset(broker, TopicPartition(topic.topic, part.partition), part))
            yield None
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
    ctx.reply(OffsetForLeaderEpochResponse(topics=topics))


def _end_offset(broker: Services, topic_partition: TopicPartition, part: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        epoch, end_offset = broker.replica_manager.partition(topic_partition).last_offset_for_leader_epoch(
            part.current_leader_epoch, part.leader_epoch, leader_only=True
        )
    except KafkaError as error:
        return EpochEndOffset(partition=part.partition, error_code=error.code)
    return EpochEndOffset(
        partition=part.partition, error_code=ErrorCode.NONE, leader_epoch=epoch, end_offset=end_offset
    )


def error_response(
    request: OffsetForLeaderEpochRequest, version: int, code: ErrorCode, message: str | None
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[EpochEndOffset(partition=part.partition, error_code=code) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )
