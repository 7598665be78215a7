"""ListOffsets (key 2), served: 0-9.

v0 answers a list of segment offsets. v1: one offset and timestamp. v2: isolation level. v4: leader epochs both ways.
v5: OFFSET_NOT_AVAILABLE. v7: -3, the record with the largest timestamp. v8: -4, the earliest local offset. v9: -5, the
latest tiered offset, of which there is none without tiering.

Kafka: KafkaApis.handleListOffsetRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.apis.records.isolation import require_isolation_level
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, SMALL_REQUEST_PARTITIONS, now_or_in_slices
from odradek.broker.fetch.offset_lookups import fetch_offset_for_timestamp, latest_offset, legacy_offsets_before
from odradek.broker.partition.partition import Partition
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Outcomes, ReadInOrder
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.protocol.shared_elements import append_shared, shared
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.offset_lookup import FIRST_STEP, LongLookupError, LookupStep
from odradek.storage.offsets import LATEST, SpecialTimestamp
from odradek.timer.repeated_items import repeated
from odradek.timer.sliced_work import Wait, listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.fetch.cold_reads import Lookup
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

Answer: TypeAlias = (
    "Callable[[Services, ListOffsetsRequest, TopicPartition, ListOffsetsPartition, int], ListOffsetsPartitionResponse]"
)

CONSUMER_REPLICA_ID = -1
DEBUGGING_REPLICA_ID = -2

LATEST_OFFSETS_A_STEP: Final = 16
"""The latest offset takes two microseconds; each other one, which may read a log, is a step of its own."""

FIRST_VERSION_OF_TIMESTAMP: Final[Mapping[int, int]] = {
    SpecialTimestamp.LATEST: 1,
    SpecialTimestamp.EARLIEST: 1,
    SpecialTimestamp.MAX: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
}


def handle(broker: Services, ctx: RequestContext, request: ListOffsetsRequest) -> None:
    require_isolation_level(request.isolation_level)
    topics = request.topics
    if len(topics) == 1 and len(topics[0].partitions) == 1 and broker.authorizer is None and ctx.header.api_version > 0:
        name, part = topics[0].name, topics[0].partitions[0]  # what consumers ask for most often
        is_in_memory = part.timestamp == LATEST or _is_in_memory(broker, name, part)
        if is_in_memory and _reply_with_one(broker, ctx, request, name, part):
            return
    work = _list_offsets(broker, ctx, request)
    is_small = ctx.size <= SMALL_REQUEST_BYTES and ctx.header.api_version > 0  # v0 looks at each segment
    now_or_in_slices(broker, ctx, request, work, is_small=is_small)


def _is_in_memory(broker: Services, name: str, part: ListOffsetsPartition) -> bool:
    """Whether the lookup need not wait for a disk."""
    if part.timestamp < 0 and part.timestamp != SpecialTimestamp.MAX:
        return True
    lookup = new_tuple(TopicPartition, (name, part.partition_index)), part.timestamp
    return broker.replica_manager.reads.cold_reads.lookups_needed((lookup,)) is None


def _reply_with_one(
    broker: Services, ctx: RequestContext, request: ListOffsetsRequest, name: str, part: ListOffsetsPartition
) -> bool:
    """Whether one step was enough to reply."""
    topic_partition = new_tuple(TopicPartition, (name, part.partition_index))
    try:
        found = _offset(broker, request, topic_partition, part, ctx.header.api_version)
    except LongLookupError:
        return False
    ctx.reply(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=name, partitions=[found])]))
    return True


def _list_offsets(broker: Services, ctx: RequestContext, request: ListOffsetsRequest) -> Steps:
    version = ctx.header.api_version
    names = (topic.name for topic in request.topics)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    is_large = ctx.size > SMALL_REQUEST_BYTES
    duplicates: set[tuple[str, int]] = set()
    if version > 0:
        warm = broker.replica_manager.reads.cold_reads.warm_lookups
        lookups = yield from _warm_lookups(warm, request.topics, authorized)
        if lookups:
            yield Wait(partial(warm, lookups))
        duplicates = yield from _duplicates(request.topics, is_large=is_large)
    answer: Answer = _offsets_v0 if version == 0 else _offset
    topics: list[ListOffsetsTopicResponse] | Outcomes[str, ListOffsetsTopicResponse]
    topics = Outcomes(_without_partitions) if is_large else []  # 1 MB may name 150,000 topics without partitions
    for topic in request.topics:
        if topic.name not in authorized:
            yield None
            continue
        found: list[ListOffsetsPartitionResponse] = []
        for number, part in enumerate(topic.partitions, 1):
            topic_partition = new_tuple(TopicPartition, (topic.name, part.partition_index))
            if duplicates and topic_partition in duplicates:
                append_shared(found, _error(part, ErrorCode.INVALID_REQUEST))
            else:
                try:
                    answered = answer(broker, request, topic_partition, part, version)
                except LongLookupError as long:
                    answered = yield from _offset_in_steps(broker, request, topic_partition, part, version, long)
                if is_large:
                    append_shared(found, answered)
                else:
                    found.append(answered)
            if part.timestamp != LATEST or not number % LATEST_OFFSETS_A_STEP:
                yield None
        if found or not isinstance(topics, Outcomes):
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=found))
        else:
            topics.add(topic.name, ErrorCode.NONE)
        yield None
    for topic in request.topics:
        yield None
        if topic.name not in authorized:
            if topic.partitions or not isinstance(topics, Outcomes):
                topics.append((yield from _unauthorized(topic, version)))
            else:
                topics.add(topic.name, ErrorCode.NONE)
    ctx.reply(ListOffsetsResponse(topics=topics))


def _without_partitions(name: str, code: int) -> ListOffsetsTopicResponse:
    """A topic has no code of its own."""
    return ListOffsetsTopicResponse(name=name)


def _warm_lookups(
    warm: Callable[[list[Lookup], Callable[[], None]], None],
    topics: Iterable[ListOffsetsTopic],
    authorized: Container[str],
) -> Generator[Wait | None, None, list[Lookup]]:
    """Read what the lookups of timestamps need that is not in memory, some partitions a step. Returns the last of the
    lookups, for which that is still to be done.
    """
    lookups: list[Lookup] = []
    for topic in topics:
        for number, part in enumerate(topic.partitions if topic.name in authorized else (), 1):
            if part.timestamp >= 0 or part.timestamp == SpecialTimestamp.MAX:
                lookups.append((TopicPartition(topic.name, part.partition_index), part.timestamp))
                if len(lookups) == SMALL_REQUEST_PARTITIONS:
                    yield Wait(partial(warm, lookups))
                    lookups = []
            if number % SMALL_REQUEST_PARTITIONS == 0:
                yield None
        yield None
    return lookups


_NO_PARTITION: Final = 1 << 32
"""In place of an index: what takes a topic without partitions for a partition reads one element in each step."""


class _Partitions(ReadInOrder[tuple[str, int]]):
    """All that a request names."""

    __slots__ = ("_count", "_topics")

    def __init__(self, topics: Sequence[ListOffsetsTopic], count: int) -> None:
        self._topics = topics
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for topic in self._topics:
            if not topic.partitions:
                yield topic.name, _NO_PARTITION
            for part in topic.partitions:
                yield topic.name, part.partition_index


def _duplicates(topics: Sequence[ListOffsetsTopic], *, is_large: bool) -> Generator[None, None, set[tuple[str, int]]]:
    """The partitions that are named more than once; those of a large request in steps."""
    if not is_large:
        named = [(topic.name, part.partition_index) for topic in topics for part in topic.partitions]
        return set() if len(set(named)) == len(named) else {each for each in named if named.count(each) > 1}
    count = 0
    for topic in topics:
        count += len(topic.partitions) or 1
        yield
    return (yield from repeated(_Partitions(topics, count)))


def _offset(
    broker: Services,
    request: ListOffsetsRequest,
    topic_partition: TopicPartition,
    part: ListOffsetsPartition,
    version: int,
    step: LookupStep = FIRST_STEP,
) -> ListOffsetsPartitionResponse:
    """Raises: LongLookupError if the lookup needs one step more."""
    timestamp, partitions = part.timestamp, broker.replica_manager.partitions
    if timestamp == LATEST and request.replica_id == CONSUMER_REPLICA_ID:  # requests name thousands of them
        hosted = partitions.by_name.get(topic_partition)
        if isinstance(hosted, Partition):
            latest = latest_offset(hosted, request.isolation_level, part.current_leader_epoch)
            if latest is not None:
                epoch = hosted.leader_epoch if version >= 4 else NO_PARTITION_LEADER_EPOCH
                index = part.partition_index
                return ListOffsetsPartitionResponse(partition_index=index, offset=latest, leader_epoch=epoch)
    if timestamp < LATEST and version < FIRST_VERSION_OF_TIMESTAMP.get(timestamp, version + 1):
        return _error(part, ErrorCode.UNSUPPORTED_VERSION)
    replica_id = request.replica_id
    try:
        found = fetch_offset_for_timestamp(
            partitions.partition(topic_partition),
            timestamp,
            request.isolation_level if replica_id == CONSUMER_REPLICA_ID else None,
            part.current_leader_epoch,
            replica_id != DEBUGGING_REPLICA_ID,
            step,
        )
    except KafkaError as error:
        code = error.code
        if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < 5:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return _error(part, code)
    if found is None:
        return _error(part, ErrorCode.NONE)
    found_timestamp, offset, leader_epoch = found
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index,
        timestamp=found_timestamp,
        offset=offset,
        leader_epoch=leader_epoch if version >= 4 else NO_PARTITION_LEADER_EPOCH,
    )


def _offset_in_steps(
    broker: Services,
    request: ListOffsetsRequest,
    topic_partition: TopicPartition,
    part: ListOffsetsPartition,
    version: int,
    long: LongLookupError,
) -> Generator[Wait | None, None, ListOffsetsPartitionResponse]:
    """The rest of a lookup after its first step. All conditions are checked again in each step."""
    while True:
        opened = None
        if long.opening is None:
            yield None
        else:
            opened = yield from broker.long_lookups.wait_for(long.opening)
        try:
            return _offset(broker, request, topic_partition, part, version, long.next_step(opened))
        except LongLookupError as error:
            long = error


def _offsets_v0(
    broker: Services,
    request: ListOffsetsRequest,
    topic_partition: TopicPartition,
    part: ListOffsetsPartition,
    version: int,
) -> ListOffsetsPartitionResponse:
    if part.timestamp < SpecialTimestamp.EARLIEST:
        return ListOffsetsPartitionResponse(
            partition_index=part.partition_index, error_code=ErrorCode.UNSUPPORTED_VERSION
        )
    try:
        offsets = legacy_offsets_before(
            broker.replica_manager.partition(topic_partition),
            part.timestamp,
            part.max_num_offsets,
            broker.clock.time_ms(),
            is_consumer=request.replica_id == CONSUMER_REPLICA_ID,
            leader_only=request.replica_id != DEBUGGING_REPLICA_ID,
        )
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=error.code)
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, old_style_offsets=offsets)


def _unauthorized(topic: ListOffsetsTopic, version: int) -> Generator[None, None, ListOffsetsTopicResponse]:
    answer = ListOffsetsTopicResponse(name=topic.name)
    for part in topic.partitions:
        if version == 0:
            refused = ListOffsetsPartitionResponse(
                partition_index=part.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
        else:
            refused = _error(part, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        append_shared(answer.partitions, refused)
        yield
    return answer


def _error(part: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code, timestamp=-1, offset=-1)


def error_response(
    request: ListOffsetsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, ListOffsetsResponse]:
    topics: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        partitions = yield from listed(shared(_error(part, code) for part in topic.partitions))
        append_shared(topics, ListOffsetsTopicResponse(name=topic.name, partitions=partitions), partitions)
        yield
    return ListOffsetsResponse(topics=topics)
