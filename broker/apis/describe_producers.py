"""DescribeProducers (key 61), served:

0. The state the leader's log keeps of each idempotent or transactional producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.topic_names import is_valid_topic_name
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services


def handle(broker: Services, ctx: RequestContext, request: DescribeProducersRequest) -> None:
    topics = []
    for topic in request.topics:
        if not is_valid_topic_name(topic.name):
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif not broker.metadata_cache.contains(topic.name):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            error = ErrorCode.NONE
        partitions = [
            _partition(broker, TopicPartition(topic.name, index))
            if error == ErrorCode.NONE
            else PartitionResponse(partition_index=index, error_code=error, error_message=DEFAULT_MESSAGES[error])
            for index in topic.partition_indexes
        ]
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    ctx.reply(DescribeProducersResponse(topics=topics))


def _partition(broker: Services, topic_partition: TopicPartition) -> PartitionResponse:
    hosted = broker.replica_manager.hosted(topic_partition)
    if hosted is None or hosted.log is None or not hosted.is_leader:
        known = broker.metadata_cache.contains_partition(*topic_partition)
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(
            partition_index=topic_partition.partition, error_code=error, error_message=DEFAULT_MESSAGES[error]
        )
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
