"""Asks a cluster which partitions its topics have, and where they begin and end at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.common.cluster import Cluster
from spark_jobs.common.job import JobError
from spark_jobs.comparison.ranges import BadRange, TopicRange, pinned

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
    cluster = Cluster(connection)
    found = cluster.log_ranges(cluster.check_topics(topics), starting_timestamp_ms, read_committed=read_committed)
    try:
        return [
            pinned(topic, {tp.partition: held for tp, held in found.items() if tp.topic == topic}, begin, end)
            for topic in topics
        ]
    except BadRange as error:
        raise JobError(str(error)) from None
