"""OffsetCommit and OffsetFetch version 0: offsets in ZooKeeper, where consumers kept them before 0.9.

No group state is involved: every client may write any group's offsets, and nothing is loaded, expired or tombstoned.

Kafka: KafkaApis.commitOffsetsToZookeeper, KafkaApis.handleOffsetFetchRequestFromZookeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from odradek.coordinator.group.offsets.offset_api import (
    INVALID_OFFSET,
    NO_METADATA,
    Outcome,
    offset_commit_response,
    offset_fetch_response,
    requested_partitions,
)
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.ports import ConsumerOffsetTree, Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import OffsetCommitResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.protocol.topic_partition import TopicPartition


def commit_to_tree(
    tree: ConsumerOffsetTree,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    refused: Outcome,
    respond: Respond[OffsetCommitResponse],
) -> None:
    """Write each offset to its znode, and respond when all are written. The znode has no place for the metadata."""
    outcome: dict[TopicPartition, ErrorCode] = {key: refused.get(key, ErrorCode.NONE) for key in offsets}
    waiting = {key for key in offsets if key not in refused}

    def finish() -> None:
        if not waiting:
            respond(offset_commit_response(outcome))

    def written(topic_partition: TopicPartition, error: ErrorCode) -> None:
        outcome[topic_partition] = error
        waiting.discard(topic_partition)
        finish()

    accepted = list(waiting)
    if not accepted:
        finish()
    for topic_partition in accepted:
        tree.set_or_create(
            group_id,
            topic_partition,
            offsets[topic_partition].offset,
            partial(written, topic_partition),
        )


def fetch_from_tree(
    tree: ConsumerOffsetTree,
    group: OffsetFetchRequestGroup,
    respond: Respond[OffsetFetchResponse],
) -> None:
    """Read each offset from its znode. In version 0 a partition without an offset is UNKNOWN_TOPIC_OR_PARTITION."""
    partitions = requested_partitions(group.topics or [])
    found: dict[TopicPartition, OffsetFetchResponsePartitions] = {}

    def finish() -> None:
        if len(found) < len(partitions):
            return
        topics: dict[str, OffsetFetchResponseTopics] = {}
        for key in partitions:
            topic = topics.setdefault(key.topic, OffsetFetchResponseTopics(name=key.topic, partitions=[]))
            topic.partitions.append(found[key])
        answer = OffsetFetchResponseGroup(group_id=group.group_id, topics=list(topics.values()))
        respond(offset_fetch_response([answer], 0))

    def read(topic_partition: TopicPartition, error: ErrorCode, offset: int | None) -> None:
        if error == ErrorCode.NONE and offset is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found[topic_partition] = OffsetFetchResponsePartitions(
            partition_index=topic_partition.partition,
            committed_offset=INVALID_OFFSET if offset is None else offset,
            metadata=NO_METADATA,
            error_code=error,
        )
        finish()

    if not partitions:
        finish()
    for topic_partition in partitions:
        tree.get(
            group.group_id,
            topic_partition,
            partial(read, topic_partition),
        )
