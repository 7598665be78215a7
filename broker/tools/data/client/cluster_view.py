"""The metadata of a client: brokers, topics, leaders. Metadata responses update it.

Kafka: MetadataSnapshot, Metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.addresses import Address
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

NO_TOPIC_ID: Final = bytes(16)


class ClusterView:
    """Brokers by id, and the topics that were asked for."""

    def __init__(self) -> None:
        self.nodes: dict[int, Address] = {}
        self.topics: dict[str, MetadataResponseTopic] = {}
        """Also topics with an error."""
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        """Leader and leader epoch."""
        self._names: dict[bytes, str] = {}
        self._available: dict[str, list[int]] = {}

    def update(self, response: MetadataResponse) -> None:
        """Take over a response. A leader with an older epoch than the known one is ignored: the answer is stale."""
        self.nodes = {node.node_id: Address(node.host, node.port) for node in response.brokers}
        for topic in response.topics:
            name = topic.name or ""
            known = self.topics.get(name)
            is_new = known is None or known.topic_id != topic.topic_id
            self.topics[name] = topic
            self._names[topic.topic_id] = name
            self._available[name] = sorted(
                partition.partition_index for partition in topic.partitions if partition.leader_id in self.nodes
            )
            for partition in topic.partitions:
                key = TopicPartition(name, partition.partition_index)
                _, epoch = self._leaders.get(key, (-1, -1))
                if is_new or partition.leader_epoch >= epoch or partition.leader_epoch < 0:
                    self._leaders[key] = partition.leader_id, partition.leader_epoch

    def leader(self, topic_partition: TopicPartition) -> int | None:
        """The broker that leads a partition; None if there is none or it is not known."""
        leader, _ = self._leaders.get(topic_partition, (-1, -1))
        return leader if leader in self.nodes else None

    def partition_count(self, topic: str) -> int:
        """0 for a topic that is not known or has an error."""
        found = self.topics.get(topic)
        return 0 if found is None or found.error_code != ErrorCode.NONE else len(found.partitions)

    def error(self, topic: str) -> int:
        """The error code of a topic; UNKNOWN_TOPIC_OR_PARTITION for one that is not known."""
        found = self.topics.get(topic)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error_code

    def available(self, topic: str) -> Sequence[int]:
        """The partitions of a topic that have a leader, ascending."""
        return self._available.get(topic, ())

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic; `NO_TOPIC_ID` from brokers without ids, and for one that is not known."""
        found = self.topics.get(topic)
        return NO_TOPIC_ID if found is None else found.topic_id

    def name_of(self, topic: str, topic_id: bytes) -> str:
        """The name of a topic in a response that has either its name or its id; "" if the id is unknown."""
        return topic or self._names.get(topic_id, "")

    def forget_missing(self, names: Iterable[str]) -> None:
        """Drop all topics but these: they are deleted, or their names no longer match."""
        gone = self.topics.keys() - set(names)
        for name in gone:
            self._names.pop(self.topics.pop(name).topic_id, None)
            self._available.pop(name, None)
        self._leaders = {key: leader for key, leader in self._leaders.items() if key.topic not in gone}
