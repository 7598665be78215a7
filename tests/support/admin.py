"""The few administrative steps that many tests begin with, through confluent-kafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

ADMIN_TIMEOUT_S = 30


class Admin:
    """An admin client that waits for each answer and raises what the broker answered."""

    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        self.client.create_topics([new], request_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)
        return topic

    def delete_topic(self, topic: str) -> None:
        self.client.delete_topics([topic], request_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)

    def create_partitions(self, topic: str, total: int) -> None:
        new = NewPartitions(topic, total)
        self.client.create_partitions([new], request_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)

    def topics(self) -> dict[str, int]:
        """Every topic with its number of partitions."""
        metadata = self.client.list_topics(timeout=ADMIN_TIMEOUT_S)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}
