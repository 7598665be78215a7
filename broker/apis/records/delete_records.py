"""DeleteRecords (key 21), served: 0-2. Offset -1 means the high watermark. v2: flexible encoding.

Kafka: KafkaApis.handleDeleteRecordsRequest.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.apis.services import in_slices
from odradek.broker.fetch.results import LogDeleteRecordsResult
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DeleteRecordsRequest) -> Steps:
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.DELETE, ResourceType.TOPIC, names)
    offsets: dict[TopicPartition, int] = {}
    results: dict[TopicPartition, LogDeleteRecordsResult] = {}
    for topic in request.topics:
        yield None
        for part in topic.partitions:
            topic_partition = TopicPartition(topic.name, part.partition_index)
            if topic.name not in authorized:
                results[topic_partition] = LogDeleteRecordsResult(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif broker.metadata_cache.contains_partition(*topic_partition):
                offsets[topic_partition] = part.offset
            else:
                results[topic_partition] = LogDeleteRecordsResult(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            yield None

    def respond(deleted: Mapping[TopicPartition, LogDeleteRecordsResult]) -> None:
        results.update(deleted)
        broker.slices.submit(_respond(ctx, results))

    if offsets:
        yield from broker.replica_manager.delete_records_in_steps(request.timeout_ms, offsets, respond)
    else:
        respond({})


def _respond(ctx: RequestContext, results: Mapping[TopicPartition, LogDeleteRecordsResult]) -> Steps:
    ctx.reply((yield from _response(results)))


def _response(
    results: Mapping[TopicPartition, LogDeleteRecordsResult],
) -> Generator[None, None, DeleteRecordsResponse]:
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for topic_partition, result in results.items():
        topics.setdefault(topic_partition.topic, []).append(
            DeleteRecordsPartitionResult(
                partition_index=topic_partition.partition,
                low_watermark=result.low_watermark,
                error_code=result.error,
            )
        )
        yield
    answered = yield from listed(
        DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in topics.items()
    )
    return DeleteRecordsResponse(topics=answered)


def error_response(
    request: DeleteRecordsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DeleteRecordsResponse]:
    refused: dict[TopicPartition, LogDeleteRecordsResult] = {}
    for topic in request.topics:
        yield
        for part in topic.partitions:
            refused[TopicPartition(topic.name, part.partition_index)] = LogDeleteRecordsResult(error=code)
            yield
    return (yield from _response(refused))
