"""DeleteRecords (key 21), served: 0-2. Offset -1 means the high watermark. v2: flexible encoding.

Kafka: KafkaApis.handleDeleteRecordsRequest.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.apis.named_partitions import AnsweredPartitions, NamedPartitions, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.fetch.results import LogDeleteRecordsResult
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.sliced_work import Steps


INVALID_LOW_WATERMARK: Final = -1


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DeleteRecordsRequest) -> Steps:
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.DELETE, ResourceType.TOPIC, names)
    named = yield from _named(request)
    outcomes: list[ErrorCode | LogDeleteRecordsResult] = []
    offsets: dict[TopicPartition, int] = {}
    places: list[int] = []
    for topic_partition, partition in named.partitions():
        outcome = ErrorCode.NONE
        if topic_partition.topic not in authorized:
            outcome = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif broker.metadata_cache.contains_partition(*topic_partition):
            offsets[topic_partition] = partition.offset
            places.append(len(outcomes))
        else:
            outcome = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        outcomes.append(outcome)
        yield None

    def respond(deleted: Mapping[TopicPartition, LogDeleteRecordsResult]) -> None:
        for place, topic_partition in zip(places, offsets, strict=True):
            outcomes[place] = deleted[topic_partition]
        ctx.reply(DeleteRecordsResponse(topics=AnsweredPartitions(named, outcomes, _topic, _result)))

    if offsets:
        yield from broker.replica_manager.delete_records_in_steps(request.timeout_ms, offsets, respond)
    else:
        respond({})


def _named(request: DeleteRecordsRequest) -> Generator[None, None, NamedPartitions[DeleteRecordsPartition]]:
    return named_partitions(Mapped(_split, request.topics), attrgetter("partition_index"))


def _split(topic: DeleteRecordsTopic) -> tuple[str, Sequence[DeleteRecordsPartition]]:
    return topic.name, topic.partitions


def _topic(name: str, partitions: Sequence[DeleteRecordsPartitionResult]) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(name=name, partitions=partitions)


def _result(
    partition: DeleteRecordsPartition, outcome: ErrorCode | LogDeleteRecordsResult
) -> DeleteRecordsPartitionResult:
    low_watermark, code = (
        (INVALID_LOW_WATERMARK, outcome) if isinstance(outcome, ErrorCode) else (outcome.low_watermark, outcome.error)
    )
    return DeleteRecordsPartitionResult(
        partition_index=partition.partition_index, low_watermark=low_watermark, error_code=code
    )


def error_response(
    request: DeleteRecordsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DeleteRecordsResponse]:
    named = yield from _named(request)
    codes = yield from listed(code for _ in named)
    return DeleteRecordsResponse(topics=AnsweredPartitions(named, codes, _topic, _result))
