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
    offset_fetch_response,
    requested_partitions,
)
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.ports import ConsumerOffsetTree, Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import SlicedWork, Steps


def commit_to_tree(
    tree: ConsumerOffsetTree,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    refused: Outcome,
    respond: Respond[Outcome],
) -> Steps:
    """Write each offset to its znode, in steps, and respond when all are written. The metadata has no place there."""
    outcome: dict[TopicPartition, ErrorCode] = dict.fromkeys(offsets, ErrorCode.NONE) | dict(refused)
    waiting = set(offsets) - set(refused)

    def finish() -> None:
        if not waiting:
            respond(outcome)

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
        yield None


def fetch_from_tree(
    tree: ConsumerOffsetTree,
    group: OffsetFetchRequestGroup,
    respond: Respond[OffsetFetchResponse],
    slices: SlicedWork,
) -> Steps:
    """Read each offset from its znode, in steps; the response is made in `slices` when all are read. In version 0 a
    partition without an offset is UNKNOWN_TOPIC_OR_PARTITION.
    """
    partitions = yield from requested_partitions(group.topics or [])
    found: dict[TopicPartition, OffsetFetchResponsePartitions] = {}

    def answer() -> Steps:
        topics: dict[str, OffsetFetchResponseTopics] = {}
        for key in partitions:
            topic = topics.setdefault(key.topic, OffsetFetchResponseTopics(name=key.topic, partitions=[]))
            topic.partitions.append(found[key])
            yield None
        answered = OffsetFetchResponseGroup(group_id=group.group_id, topics=list(topics.values()))
        response = yield from offset_fetch_response([answered], 0)
        respond(response)

    def read(topic_partition: TopicPartition, error: ErrorCode, offset: int | None) -> None:
        if error == ErrorCode.NONE and offset is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found[topic_partition] = OffsetFetchResponsePartitions(
            partition_index=topic_partition.partition,
            committed_offset=INVALID_OFFSET if offset is None else offset,
            metadata=NO_METADATA,
            error_code=error,
        )
        if len(found) == len(partitions):
            slices.submit(answer())

    if not partitions:
        slices.submit(answer())
    for topic_partition in partitions:
        tree.get(
            group.group_id,
            topic_partition,
            partial(read, topic_partition),
        )
        yield None
