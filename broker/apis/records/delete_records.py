"""DeleteRecords (key 21), served: 0-2. Offset -1 means the high watermark. v2: flexible encoding.

Kafka: KafkaApis.handleDeleteRecordsRequest.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.apis.named_partitions import NamedPartitions, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.mapped import Mapped, Outcomes
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
    from odradek.broker.fetch.results import LogDeleteRecordsResult
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps


HIGH_WATERMARK: Final = -1
"""As an offset of a request: delete all that consumers may read."""

INVALID_LOW_WATERMARK: Final = -1

_Results: TypeAlias = dict[str, Outcomes[int, DeleteRecordsPartitionResult]]
"""By topic."""

_INDEX: Final = attrgetter("partition_index")


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DeleteRecordsRequest) -> Steps:
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.DELETE, ResourceType.TOPIC, names)
    results: _Results = {}
    offsets: dict[TopicPartition, int] = {}
    for topic_partition in (yield from _named(request)):
        name, index = topic_partition
        if name not in authorized:
            _of_topic(results, name).add(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif broker.metadata_cache.contains_partition(name, index):
            offsets[topic_partition] = HIGH_WATERMARK
        else:
            _of_topic(results, name).add(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        yield None
    for topic in request.topics if offsets else ():
        yield None
        for part in topic.partitions:
            topic_partition = TopicPartition(topic.name, part.partition_index)
            if topic_partition in offsets:
                offsets[topic_partition] = part.offset  # the last mention counts
            yield None

    def respond(deleted: Mapping[TopicPartition, LogDeleteRecordsResult]) -> None:
        broker.slices.submit(_respond(ctx, results, deleted))

    if offsets:
        yield from broker.replica_manager.delete_records_in_steps(request.timeout_ms, offsets, respond)
    else:
        respond({})


def _named(request: DeleteRecordsRequest) -> Generator[None, None, NamedPartitions]:
    return named_partitions((topic.name, Mapped(_INDEX, topic.partitions)) for topic in request.topics)


def _of_topic(results: _Results, name: str) -> Outcomes[int, DeleteRecordsPartitionResult]:
    if name not in results:
        results[name] = Outcomes(_refused)
    return results[name]


def _refused(index: int, code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=code)


def _respond(ctx: RequestContext, results: _Results, deleted: Mapping[TopicPartition, LogDeleteRecordsResult]) -> Steps:
    for (name, index), result in deleted.items():
        _of_topic(results, name).append(
            DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=result.low_watermark, error_code=result.error
            )
        )
        yield None
    ctx.reply((yield from _response(results)))


def _response(results: _Results) -> Generator[None, None, DeleteRecordsResponse]:
    topics = yield from listed(
        DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in results.items()
    )
    return DeleteRecordsResponse(topics=topics)


def error_response(
    request: DeleteRecordsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DeleteRecordsResponse]:
    refused: _Results = {}
    for name, index in (yield from _named(request)):
        _of_topic(refused, name).add(index, code)
        yield
    return (yield from _response(refused))
