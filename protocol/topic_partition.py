"""A topic name and a partition number: the name of one log.

Kafka: TopicPartition.
"""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Ordered by topic, then partition; printed as Kafka names its log directories (`topic-3`)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
