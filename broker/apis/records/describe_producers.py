"""DescribeProducers (key 61), served: 0. The log's state of each idempotent or transactional producer.

Kafka: KafkaApis.handleDescribeProducersRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import require
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.topic_names import validate_topic_name
from odradek.protocol.codec.mapped import Outcomes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

NO_PRODUCERS: Final[list[ProducerState]] = []
"""Of all refused partitions, 260,000 of which one request may name. Nothing must be added to it."""


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeProducersRequest) -> Steps:
    topics = Outcomes(_without_partitions)
    for topic in request.topics:
        error = _topic_error(broker, ctx, topic.name)
        if not topic.partition_indexes:
            topics.add(topic.name, ErrorCode.NONE)
            yield None
            continue
        partitions = Outcomes(partial(_refusal, message=None if error is None else error.message))
        last: PartitionResponse | None = None
        yield None
        for index in topic.partition_indexes:
            if error is not None:
                partitions.add(index, error.code)
            elif last is None or last.partition_index != index:
                last = _partition(broker, TopicPartition(topic.name, index))
            if last is not None:  # a request of 1 MB names one partition 260,000 times
                if last.error_code == ErrorCode.NONE:
                    partitions.append(last)
                else:
                    partitions.add(index, last.error_code)
            yield None
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    ctx.reply(DescribeProducersResponse(topics=topics))


def _without_partitions(name: str, code: int) -> TopicResponse:
    """A topic has no code of its own."""
    return TopicResponse(name=name)


def _topic_error(broker: Services, ctx: RequestContext, topic: str) -> KafkaError | None:
    try:
        validate_topic_name(topic)
        require(broker, ctx, AclOperation.READ, ResourceType.TOPIC, topic)
    except KafkaError as error:
        return error.as_value()
    known = broker.metadata_cache.contains(topic)
    return None if known else KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _partition(broker: Services, topic_partition: TopicPartition) -> PartitionResponse:
    """The producers of the log, on a leader or a follower."""
    try:
        hosted = broker.replica_manager.partition(topic_partition)
    except KafkaError as error:
        return _refusal(topic_partition.partition, error.code)
    if hosted.log is None:
        return _refusal(topic_partition.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return PartitionResponse(
        partition_index=topic_partition.partition,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_seq,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer_id, producer in hosted.log.active_producers().items()
        ],
    )


def _refusal(index: int, code: int, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=code, error_message=message, active_producers=NO_PRODUCERS
    )
