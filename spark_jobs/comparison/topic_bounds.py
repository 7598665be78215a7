"""Asks a cluster which partitions its topics have, and where they begin and end at this moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.broker.tools.admin.client.offset_lookups import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_RECORD,
    FoundOffset,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.common.cluster_client import ClusterClient
from spark_jobs.common.job import JobError
from spark_jobs.comparison.ranges import BadRange, Bounds, TopicRange, pinned

if TYPE_CHECKING:
    from spark_jobs.common.kafka_options import KafkaConnection


def pinned_ranges(
    connection: KafkaConnection,
    topics: Sequence[str],
    *,
    begin: str,
    end: str,
    starting_timestamp_ms: int | None,
    read_committed: bool,
) -> list[TopicRange]:
    """The ranges of the topics, from what the cluster holds at this moment. Raises: JobError."""
    client = ClusterClient(connection)
    counts = client.partitions(topics)
    for topic in topics:
        if topic not in counts:
            raise JobError(f"there is no topic {topic} on {connection.bootstrap_servers}, or no right to describe it")
    partitions = [TopicPartition(topic, index) for topic in counts for index in range(counts[topic])]
    times = (EARLIEST_TIMESTAMP if starting_timestamp_ms is None else starting_timestamp_ms, LATEST_TIMESTAMP)
    begins, ends = client.offsets((dict.fromkeys(partitions, time) for time in times), read_committed=read_committed)
    try:
        return [pinned(topic, _bounds(topic, begins, ends), begin, end) for topic in topics]
    except BadRange as error:
        raise JobError(str(error)) from None


def _bounds(
    topic: str, begins: Mapping[TopicPartition, FoundOffset], ends: Mapping[TopicPartition, FoundOffset]
) -> dict[int, Bounds]:
    """Where the partitions of a topic begin and end. Raises: JobError if a leader has not answered that."""
    found: dict[int, Bounds] = {}
    for tp, first in begins.items():
        if tp.topic != topic:
            continue
        last = ends[tp]
        for answer in (first, last):
            if answer.error_code != ErrorCode.NONE:
                raise JobError(f"the offsets of {tp}: {ErrorCode.for_code(answer.error_code).name}")
        begin = last.offset if first.offset == NO_RECORD else first.offset
        found[tp.partition] = Bounds(begin=begin, end=max(begin, last.offset))
    return found
