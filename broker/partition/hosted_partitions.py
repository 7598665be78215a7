"""The partitions that this broker hosts, by name: those with a `Partition`, and those whose log directory has failed.

Kafka: HostedPartition, ReplicaManager.allPartitions, ReplicaManager.getPartitionOrException,
ReplicaManager.onlinePartition, ReplicaManager.markPartitionOffline.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from odradek.broker.partition.partition import Partition
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
    from odradek.broker.partition.leadership import PartitionEnvironment
    from odradek.protocol.topic_partition import TopicPartition


class Hosted(Enum):
    OFFLINE = "offline"  # its log directory has failed


class HostedPartitions:
    """The partitions of one broker."""

    def __init__(self, environment: PartitionEnvironment) -> None:
        self._environment = environment
        self.isr_changes = environment.isr_changes
        self.by_name: dict[TopicPartition, Partition | Hosted] = {}
        """Changed here only. Appends look into it: cheaper than a call."""
        self.topic_stats: BrokerTopicStats | None = None
        """The counters of appends and reads; None while metrics are off."""
        self.failed_partitions: set[TopicPartition] = set()
        """Partitions that are not followed because of an error, until the controller names their leader again."""

    def count_replicated(self, topic_partition: TopicPartition, size: int) -> None:
        """A follower here has fetched so many bytes."""
        stats = self.topic_stats
        if stats is not None:
            stats.replication_bytes_in += size
            hosted = self.hosted(topic_partition)
            if hosted is not None and self._environment.broker_id in hosted.adding_replicas:
                stats.reassignment_bytes_in += size

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """The hosted partition.

        Raises: KafkaError KAFKA_STORAGE_ERROR when its directory failed; NOT_LEADER_OR_FOLLOWER when only other brokers
        host it (so that a client refreshes its metadata); UNKNOWN_TOPIC_OR_PARTITION.
        """
        hosted = self.by_name.get(topic_partition)
        if isinstance(hosted, Partition):
            return hosted
        if hosted is Hosted.OFFLINE:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic_partition} is in an offline log directory"
            )
        cache = self._environment.metadata_cache
        known = cache.contains_partition(topic_partition.topic, topic_partition.partition)
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Error while fetching partition state for {topic_partition}",
        )

    def partition_of_topic(self, topic_partition: TopicPartition, topic_id: bytes) -> Partition:
        """The hosted partition; the topic id of the fetch must be the log's. `ZERO_UUID` means that it names none.

        Raises: as `partition`; KafkaError INCONSISTENT_TOPIC_ID.
        """
        hosted = self.by_name.get(topic_partition)
        partition = hosted if isinstance(hosted, Partition) else self.partition(topic_partition)
        log = partition.log
        if topic_id == ZERO_UUID or (log is not None and log.topic_id == topic_id):
            return partition
        if partition.topic_id not in (None, topic_id):
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                "Topic ID in the fetch session did not match the topic ID in the log.",
            )
        return partition

    def hosted(self, topic_partition: TopicPartition) -> Partition | None:
        """The hosted partition, None when it is not hosted or its directory failed."""
        hosted = self.by_name.get(topic_partition)
        return hosted if isinstance(hosted, Partition) else None

    def online_partitions(self) -> Iterator[Partition]:
        """Those that are online now, also if other work runs between two of them."""
        return (hosted for hosted in list(self.by_name.values()) if isinstance(hosted, Partition))

    @property
    def offline_count(self) -> int:
        """The number of partitions whose log directory has failed."""
        return list(self.by_name.values()).count(Hosted.OFFLINE)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return self.by_name.get(topic_partition) is Hosted.OFFLINE

    def create(self, topic_partition: TopicPartition) -> Partition:
        """Begin to host a partition, without a log yet."""
        created = self.by_name[topic_partition] = Partition(topic_partition, self._environment)
        return created

    def forget(self, topic_partition: TopicPartition) -> None:
        """Stop hosting the partition."""
        hosted = self.by_name.pop(topic_partition)
        if isinstance(hosted, Partition):
            hosted.news.announce()

    def take_offline(self, topic_partition: TopicPartition) -> None:
        """Close the partition, whose log directory has failed. From now on requests for it get KAFKA_STORAGE_ERROR,
        also when it was not hosted.
        """
        hosted = self.by_name.get(topic_partition)
        if isinstance(hosted, Partition):
            hosted.close()
        self.by_name[topic_partition] = Hosted.OFFLINE

    def announce(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Wake the readers of these partitions: something outside of `Partition` has changed."""
        for topic_partition in topic_partitions:
            hosted = self.by_name.get(topic_partition)
            if isinstance(hosted, Partition):
                hosted.news.announce()
