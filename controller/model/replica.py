"""Identifies one replica.

Kafka: PartitionAndReplica.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.topic_partition import TopicPartition


class PartitionAndReplica(NamedTuple):
    """A partition and the id of the broker that hosts the replica."""

    topic_partition: TopicPartition
    replica: int

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    def __str__(self) -> str:
        return f"[Topic={self.topic},Partition={self.topic_partition.partition},Replica={self.replica}]"
