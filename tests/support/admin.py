"""The few administrative steps that many tests begin with, through confluent-kafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.waiting import eventually

ADMIN_TIMEOUT_S = 30


class Admin:
    """An admin client that waits for each answer and raises what the broker answered."""

    def __init__(self, bootstrap: str) -> None:
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, replicas: int = 1
    ) -> str:
        return self._create(NewTopic(topic, partitions, replication_factor=replicas, config=dict(config or {})))

    def create_topic_again(self, topic: str) -> str:
        """A topic of the name of a deleted one. The name is taken ("marked for deletion") until the deletion is
        complete, which is after its answer and after the topic has left the metadata.
        """

        def is_created() -> bool:
            try:
                self.create_topic(topic)
            except KafkaException as refusal:
                if refusal.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return False
            return True

        eventually(is_created)
        return topic

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
