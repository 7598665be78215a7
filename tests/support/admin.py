"""The few administrative steps that many tests begin with, through confluent-kafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

ADMIN_TIMEOUT_S = 30


class Admin:
    """An admin client that waits for each answer and raises what the broker answered."""

    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, replicas: int = 1
    ) -> str:
        return self._create(NewTopic(topic, partitions, replication_factor=replicas, config=dict(config or {})))

    def create_assigned_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> str:
        """A topic with the replicas of each of its partitions given."""
        return self._create(
            NewTopic(topic, len(assignment), replica_assignment=[*map(list, assignment)], config=dict(config or {}))
        )

    def _create(self, new: NewTopic) -> str:
        topic = str(new.topic)
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
