"""The active controller's cache of the metadata tree: brokers, topics, assignments and leaders.

It only stores. Only the controller's event handler changes it, one event at a time, so it is consistent between two
events.

* A broker is *live or shutting down* while it is registered, and *live* if it is also not shutting down.
* A replica is *online* when its broker is live and has not reported the replica on a failed log directory.
* A topic *queued for deletion* stays in every table until its last replica is deleted.

Kafka: ControllerContext.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from odradek.controller.model.broker_info import Broker
from odradek.controller.model.leader_and_isr import EPOCH_DURING_DELETE, NO_EPOCH, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import NO_REPLICAS, ReplicaAssignment
from odradek.controller.model.replica import PartitionAndReplica
from odradek.protocol.topic_partition import TopicPartition


class ControllerContext:
    """See the module. `epoch` is the controller epoch, `epoch_zk_version` the node version that fences its writes."""

    def __init__(self) -> None:
        self.epoch = 0
        self.epoch_zk_version = 0
        self.shutting_down_broker_ids: set[int] = set()
        self.all_topics: set[str] = set()
        self.topic_ids: dict[str, bytes] = {}
        self.topic_names: dict[bytes, str] = {}
        self.partitions_being_reassigned: set[TopicPartition] = set()
        self.replicas_on_offline_dirs: dict[int, frozenset[TopicPartition]] = {}
        self.topics_to_be_deleted: set[str] = set()
        self.topics_with_deletion_started: set[str] = set()
        self.topics_ineligible_for_deletion: set[str] = set()
        self._brokers: dict[int, Broker] = {}
        self._broker_epochs: dict[int, int] = {}
        self._assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self._leadership: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}

    # Brokers

    def set_live_brokers(self, epochs: Mapping[Broker, int]) -> None:
        self._brokers.clear()
        self._broker_epochs.clear()
        self.add_live_brokers(epochs)

    def add_live_brokers(self, epochs: Mapping[Broker, int]) -> None:
        for broker, epoch in epochs.items():
            self._brokers[broker.id] = broker
            self._broker_epochs[broker.id] = epoch

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            self._brokers.pop(broker_id, None)
            self._broker_epochs.pop(broker_id, None)

    def update_broker(self, broker: Broker) -> None:
        """Set the new endpoints of a broker; its broker epoch stays. Kafka: ControllerContext.updateBrokerMetadata."""
        self._brokers[broker.id] = broker

    @property
    def live_broker_ids(self) -> set[int]:
        return self._broker_epochs.keys() - self.shutting_down_broker_ids

    @property
    def live_or_shutting_down_broker_ids(self) -> set[int]:
        return set(self._broker_epochs)

    @property
    def live_or_shutting_down_brokers(self) -> list[Broker]:
        return list(self._brokers.values())

    def live_or_shutting_down_broker(self, broker_id: int) -> Broker | None:
        return self._brokers.get(broker_id)

    def broker_epoch(self, broker_id: int) -> int | None:
        return self._broker_epochs.get(broker_id)

    def is_live_broker(self, broker_id: int) -> bool:
        return broker_id in self._broker_epochs and broker_id not in self.shutting_down_broker_ids

    # Topics and assignments

    def add_topic_id(self, topic: str, topic_id: bytes) -> None:
        known = self.topic_ids.get(topic)
        if known is not None and known != topic_id:
            raise ValueError(f"topic {topic} has two ids, {known.hex()} and {topic_id.hex()}")
        other = self.topic_names.get(topic_id)
        if other is not None and other != topic:
            raise ValueError(f"topic id {topic_id.hex()} belongs to {other} and to {topic}")
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    def remove_topic(self, topic: str) -> None:
        """Remove the topic from every table, so that a new topic of the same name starts without its state."""
        self.topics_to_be_deleted.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)
        self.topics_with_deletion_started.discard(topic)
        self.all_topics.discard(topic)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        partitions = {TopicPartition(topic, partition) for partition in self._assignments.pop(topic, ())}
        for partition in partitions:
            self._leadership.pop(partition, None)
        self.partitions_being_reassigned -= partitions
        for broker_id, offline in self.replicas_on_offline_dirs.items():
            self.replicas_on_offline_dirs[broker_id] = offline - partitions

    def full_assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self._assignments.get(partition.topic, {}).get(partition.partition, NO_REPLICAS)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """The assigned replicas; empty for a partition that does not exist."""
        return self.full_assignment(partition).replicas

    def update_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        self._assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    def assignments_of(self, topic: str) -> dict[int, ReplicaAssignment]:
        return dict(self._assignments.get(topic, {}))

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in self._assignments.get(topic, ())]

    def partition_count_of(self, topic: str) -> int:
        return len(self._assignments.get(topic, ()))

    def each_partition(self) -> Iterator[TopicPartition]:
        """`all_partitions` one after the other. Topics and partitions may come and go between two of them."""
        for topic in list(self._assignments):
            for partition in list(self._assignments.get(topic, ())):
                yield TopicPartition(topic, partition)

    @property
    def partition_count(self) -> int:
        return sum(map(len, self._assignments.values()))

    @property
    def all_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for topic, parts in self._assignments.items() for partition in parts]

    def partitions_on_broker(self, broker_id: int) -> list[TopicPartition]:
        return [pr.topic_partition for pr in self.replicas_on_brokers({broker_id})]

    def replicas_on_brokers(self, broker_ids: Iterable[int]) -> list[PartitionAndReplica]:
        wanted = set(broker_ids)
        return [
            PartitionAndReplica(TopicPartition(topic, partition), replica)
            for topic, assignments in self._assignments.items()
            for partition, assignment in assignments.items()
            for replica in assignment.replicas
            if replica in wanted
        ]

    def replicas_of_topic(self, topic: str) -> list[PartitionAndReplica]:
        return self.replicas_of_partitions(self.partitions_of(topic))

    def replicas_of_partitions(self, partitions: Iterable[TopicPartition]) -> list[PartitionAndReplica]:
        return [PartitionAndReplica(p, replica) for p in partitions for replica in self.replicas(p)]

    # Leadership

    def leadership(self, partition: TopicPartition) -> LeaderIsrAndControllerEpoch | None:
        return self._leadership.get(partition)

    def put_leadership(self, partition: TopicPartition, leadership: LeaderIsrAndControllerEpoch) -> None:
        self._leadership[partition] = leadership

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch for StopReplica."""
        if self.is_topic_queued_for_deletion(partition.topic):
            return EPOCH_DURING_DELETE
        leadership = self._leadership.get(partition)
        return NO_EPOCH if leadership is None else leadership.leader_and_isr.leader_epoch

    @property
    def partitions_with_leaders(self) -> list[TopicPartition]:
        """Every partition that has had a leader, except those being deleted."""
        return [p for p in self._leadership if p.topic not in self.topics_to_be_deleted]

    @property
    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        return [
            partition
            for partition, leadership in self._leadership.items()
            if not self.is_replica_online(leadership.leader_and_isr.leader, partition)
            and partition.topic not in self.topics_to_be_deleted
        ]

    def partition_leaders_on_broker(self, broker_id: int) -> list[TopicPartition]:
        """Partitions with more than one replica that the broker leads."""
        return [
            partition
            for partition, leadership in self._leadership.items()
            if partition.topic not in self.topics_to_be_deleted
            and leadership.leader_and_isr.leader == broker_id
            and len(self.replicas(partition)) > 1
        ]

    # Replicas

    def is_replica_online(
        self, broker_id: int, partition: TopicPartition, *, include_shutting_down: bool = False
    ) -> bool:
        is_up = broker_id in self._broker_epochs if include_shutting_down else self.is_live_broker(broker_id)
        return is_up and partition not in self.replicas_on_offline_dirs.get(broker_id, ())

    def online_replicas(self, partition: TopicPartition, *, include_shutting_down: bool = False) -> tuple[int, ...]:
        """The assigned replicas that are online, in assignment order."""
        return tuple(
            replica
            for replica in self.replicas(partition)
            if self.is_replica_online(replica, partition, include_shutting_down=include_shutting_down)
        )

    # Deletion

    def queue_topic_deletion(self, topics: set[str]) -> None:
        """Queue topics. This ends their reassignments: all replicas are deleted, also those that were being added."""
        self.topics_to_be_deleted |= topics
        for topic in topics:
            self.partitions_being_reassigned.difference_update(self.partitions_of(topic))

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        return topic in self.topics_with_deletion_started
