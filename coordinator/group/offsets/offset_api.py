"""Conversions between the messages of OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and a group's offsets.

OffsetCommit (0-9): version 0 keeps offsets in ZooKeeper (zookeeper_offsets.py); 1 has a commit time per partition;
2 to 4 one retention for all; 6 adds leader epochs; 7 `group.instance.id`. OffsetFetch (0-9): version 0 reads
ZooKeeper; 2 adds "all partitions" (null) and a top-level error (up to 1 a group's error is set on every partition);
5 adds leader epochs; 7 `require_stable`; 8 several groups.

The handler has already checked that the topics exist and are authorized: every partition in a request is served.

Kafka: GroupCoordinatorAdapter, OffsetFetchResponse.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import cast

from odradek.coordinator.group.group_metadata_manager import OFFSETS_A_STEP
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
)
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import listed

INVALID_OFFSET = -1
NO_METADATA = ""
NO_RETENTION = -1

Outcome = Mapping[TopicPartition, ErrorCode]


Offsets = dict[TopicPartition, OffsetAndMetadata]


def offsets_to_commit(request: OffsetCommitRequest, now_ms: int) -> Generator[None, None, Offsets]:
    """The request's offsets, in steps. Of a partition that occurs twice, the last one counts."""
    expire_ms = None if request.retention_time_ms == NO_RETENTION else _as_long(now_ms + request.retention_time_ms)
    offsets: Offsets = {}
    for topic in request.topics:
        for number, partition in enumerate(topic.partitions, 1):
            offset, epoch = partition.committed_offset, partition.committed_leader_epoch
            metadata = partition.committed_metadata or NO_METADATA
            commit_ms = now_ms if partition.commit_timestamp == NO_TIMESTAMP else partition.commit_timestamp
            topic_partition = new_tuple(TopicPartition, (topic.name, partition.partition_index))
            offsets[topic_partition] = new_tuple(OffsetAndMetadata, (offset, commit_ms, epoch, metadata, expire_ms))
            if number % OFFSETS_A_STEP == 0:
                yield
        yield
    return offsets


def _as_long(value: int) -> int:
    """Wrap a sum as a Java long does: with a retention of Long.MAX_VALUE the offset expires at once."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def transactional_offsets_to_commit(request: TxnOffsetCommitRequest, now_ms: int) -> Generator[None, None, Offsets]:
    """The same for offsets in a transaction."""
    offsets: Offsets = {}
    for topic in request.topics:
        for number, partition in enumerate(topic.partitions, 1):
            offsets[TopicPartition(topic.name, partition.partition_index)] = OffsetAndMetadata(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata or NO_METADATA,
                commit_timestamp_ms=now_ms,
            )
            if number % OFFSETS_A_STEP == 0:
                yield
        yield
    return offsets


# -- OffsetFetch ---------------------------------------------------------------------------------------------


def requested_groups(request: OffsetFetchRequest, version: int) -> Sequence[OffsetFetchRequestGroup]:
    """The request in the form of version 8 and later, a list of groups.

    The topics stay those of the older form, which has the same fields: 170,000 others would have 12 MB.
    """
    if version >= 8:
        return request.groups
    topics = cast("list[OffsetFetchRequestTopics] | None", request.topics)
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def requested_partitions(topics: Iterable[OffsetFetchRequestTopics]) -> Generator[None, None, list[TopicPartition]]:
    """Each partition once, in the order of the request; in steps."""
    partitions: dict[TopicPartition, None] = {}
    for topic in topics:
        for number, index in enumerate(topic.partition_indexes, 1):
            partitions[TopicPartition(topic.name, index)] = None
            if number % OFFSETS_A_STEP == 0:
                yield
        yield
    return (yield from listed(partitions))


def fetched_offsets(
    group: GroupMetadata | None, partitions: list[TopicPartition] | None, *, require_stable: bool
) -> Generator[None, None, list[OffsetFetchResponseTopics]]:
    """Offsets of the given partitions, or of all that have one, in steps. Without an offset: -1 and no error."""
    known = group is not None and not group.is_dead
    if partitions is None:
        partitions = list(group.offsets) if group is not None and known else []  # offsets may come and go meanwhile
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for number, topic_partition in enumerate(partitions, 1):
        name, index = topic_partition
        found = OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=INVALID_OFFSET, metadata=NO_METADATA, error_code=ErrorCode.NONE
        )
        if group is not None and known:
            if require_stable and group.offsets.is_unstable(topic_partition):
                found.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            elif (offset := group.offsets.get(topic_partition)) is not None:
                found.committed_offset = offset.offset
                found.committed_leader_epoch = offset.leader_epoch
                found.metadata = offset.metadata
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = OffsetFetchResponseTopics(name=name, partitions=[])
        topic.partitions.append(found)
        if number % OFFSETS_A_STEP == 0:
            yield
    return (yield from listed(topics.values()))


def offset_fetch_response(
    groups: Sequence[OffsetFetchResponseGroup], version: int
) -> Generator[None, None, OffsetFetchResponse]:
    """The response in the shape of the version, in steps; up to 7 there is exactly one group."""
    if version >= 8:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = yield from listed(
        OffsetFetchResponseTopic(name=topic.name, partitions=Mapped(_of_older_form, topic.partitions))
        for topic in group.topics
    )
    return OffsetFetchResponse(error_code=group.error_code, topics=topics)


def _of_older_form(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def offset_fetch_error(
    group: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> Generator[None, None, OffsetFetchResponseGroup]:
    """A group's error, in steps; up to version 1 the response has error fields for partitions only."""
    failed = OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error)
    if version >= 2:
        return failed
    for topic in group.topics or []:
        partitions = yield from listed(
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=INVALID_OFFSET, metadata=NO_METADATA, error_code=error
            )
            for index in topic.partition_indexes
        )
        failed.topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=partitions))
        yield
    return failed
