"""DescribeProducers (key 61), served: 0. The log's state of each idempotent or transactional producer.

Kafka: KafkaApis.handleDescribeProducersRequest.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import require
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.controller.model.topic_names import validate_topic_name
from odradek.protocol.codec.arrays.mapped import Mapped, Zipped
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.storage.producers.producer_state import ProducerStateEntry
    from odradek.timer.sliced_work import Steps

NO_PRODUCERS: Final[list[ProducerState]] = []
"""Of all refused partitions, 260,000 of which one request may name. Nothing must be added to it."""

Outcome: TypeAlias = "Sequence[PartitionResponse] | KafkaError | ErrorCode"
"""Of a topic: its partitions, the error of the topic, or the same code for each partition."""


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeProducersRequest) -> Steps:
    outcomes: list[Outcome] = []
    errors: dict[ErrorCode, KafkaError] = {}
    for topic in request.topics:
        error = _topic_error(broker, ctx, topic.name)
        yield None
        if not topic.partition_indexes:
            outcomes.append(())
        elif error is not None:
            outcomes.append(errors.setdefault(error.code, error))
        else:
            found = yield from _partitions(broker, topic)
            outcomes.append(found)
    ctx.reply(DescribeProducersResponse(topics=Zipped(_answered, request.topics, outcomes)))


def _answered(topic: TopicRequest, outcome: Outcome) -> TopicResponse:
    """Made while it is encoded: a request of 1 MB may name 75,000 topics."""
    if isinstance(outcome, KafkaError):
        is_about_the_name = outcome.code == ErrorCode.INVALID_TOPIC_EXCEPTION  # and its message has the name
        error = (_name_error(topic.name) if is_about_the_name else None) or outcome
        refusal = partial(_refusal, code=error.code, message=error.message)
    elif isinstance(outcome, ErrorCode):
        refusal = partial(_refusal, code=outcome)
    else:
        return TopicResponse(name=topic.name, partitions=outcome)
    return TopicResponse(name=topic.name, partitions=Mapped(refusal, topic.partition_indexes))


def _topic_error(broker: Services, ctx: RequestContext, topic: str) -> KafkaError | None:
    try:
        validate_topic_name(topic)
        require(broker, ctx, AclOperation.READ, ResourceType.TOPIC, topic)
    except KafkaError as error:
        return error.as_value()
    known = broker.metadata_cache.contains(topic)
    return None if known else KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _name_error(topic: str) -> KafkaError | None:
    try:
        validate_topic_name(topic)
    except KafkaError as error:
        return error.as_value()
    return None


def _partitions(broker: Services, topic: TopicRequest) -> Generator[None, None, Outcome]:
    """A refused one, of which a request of 1 MB may name 260,000, needs two bytes until it is encoded."""
    described: dict[int, PartitionResponse] = {}
    codes = array("h")
    last: PartitionResponse | None = None
    for index in topic.partition_indexes:
        if last is None or last.partition_index != index:  # one partition may be there 260,000 times
            last = described.get(index) or _partition(broker, TopicPartition(topic.name, index))
            if last.error_code == ErrorCode.NONE:
                described[index] = last
        codes.append(last.error_code)
        yield
    if not described and codes.count(codes[0]) == len(codes):
        return ErrorCode.for_code(codes[0])

    def answered(index: int, code: int) -> PartitionResponse:
        return _refusal(index, code) if code else described[index]

    return Zipped(answered, topic.partition_indexes, codes)


def _partition(broker: Services, topic_partition: TopicPartition) -> PartitionResponse:
    """The producers of the log, on a leader or a follower."""
    try:
        hosted = broker.replica_manager.partition(topic_partition)
    except KafkaError as error:
        return _refusal(topic_partition.partition, error.code)
    if hosted.log is None:
        return _refusal(topic_partition.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    # A log may have 100,000 producers. An append may change one before it is encoded: all fields have a fixed size.
    entries = list(hosted.log.active_producers().values())
    return PartitionResponse(partition_index=topic_partition.partition, active_producers=Mapped(_state, entries))


def _state(producer: ProducerStateEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_seq,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )


def _refusal(index: int, code: int, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=code, error_message=message, active_producers=NO_PRODUCERS
    )
