"""OffsetForLeaderEpoch (key 23), served: 0-4.

v1: the epoch in the response. v2: the client's leader epoch is checked. v3: replica id, -2 for a debugging reader of
any replica.

Kafka: KafkaApis.handleOffsetForLeaderEpochRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import EVERYTHING, authorize, filter_by_authorized
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.protocol.shared_elements import append_shared
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Container, Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: OffsetForLeaderEpochRequest) -> Steps:
    authorized = yield from _authorized_topics(broker, ctx, request)
    topics, refused = Outcomes(_without_partitions), Outcomes(_without_partitions)
    for topic in request.topics:
        is_authorized = topic.topic in authorized
        yield None
        if not topic.partitions:
            (topics if is_authorized else refused).add(topic.topic, ErrorCode.NONE)
            continue
        found = Outcomes(_failed)
        for part in topic.partitions:
            if not is_authorized:
                found.add(part.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            else:
                end = _end_offset(broker, TopicPartition(topic.topic, part.partition), part)
                if end.error_code == ErrorCode.NONE:
                    found.append(end)
                else:
                    found.add(part.partition, end.error_code)
            yield None
        answer = OffsetForLeaderTopicResult(topic=topic.topic, partitions=found.smaller())
        (topics if is_authorized else refused).append(answer)
    topics.extend(refused)
    ctx.reply(OffsetForLeaderEpochResponse(topics=topics))


def _without_partitions(name: str, code: int) -> OffsetForLeaderTopicResult:
    """A topic has no code of its own."""
    return OffsetForLeaderTopicResult(topic=name)


def _authorized_topics(
    broker: Services, ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> Generator[None, None, Container[str]]:
    """All for a broker; for a consumer, which looks for truncation (KIP-320), those that it may describe."""
    if authorize(broker, ctx, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        return EVERYTHING
    names = (topic.topic for topic in request.topics)
    return (yield from filter_by_authorized(broker, ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names))


def _end_offset(broker: Services, topic_partition: TopicPartition, part: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        epoch, end_offset = broker.replica_manager.partition(topic_partition).last_offset_for_leader_epoch(
            part.current_leader_epoch, part.leader_epoch, leader_only=True
        )
    except KafkaError as error:
        return _failed(part.partition, error.code)
    return EpochEndOffset(
        partition=part.partition, error_code=ErrorCode.NONE, leader_epoch=epoch, end_offset=end_offset
    )


def _failed(index: int, code: int) -> EpochEndOffset:
    return EpochEndOffset(partition=index, error_code=code)


def error_response(
    request: OffsetForLeaderEpochRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, OffsetForLeaderEpochResponse]:
    topics: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        partitions = yield from listed(
            EpochEndOffset(partition=part.partition, error_code=code) for part in topic.partitions
        )
        append_shared(topics, OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions), partitions)
        yield
    return OffsetForLeaderEpochResponse(topics=topics)
