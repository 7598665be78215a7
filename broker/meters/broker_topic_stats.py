"""What a broker has received and sent, in all and for each topic.

Counted once for each partition of a request, never for each record, and only while metrics are on.

Kafka: BrokerTopicStats, BrokerTopicMetrics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.sliced_work import Steps


class BrokerTopicMetrics:
    """The counters of one topic, or of all topics."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_message_conversions",
        "messages_in",
        "produce_message_conversions",
        "total_fetch_requests",
        "total_produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        """Sent to consumers."""
        self.bytes_rejected = 0
        """Of batches above `max.message.bytes`."""
        self.total_produce_requests = 0
        """Partitions of produce requests."""
        self.failed_produce_requests = 0
        """Partitions that were refused for another reason than those that clients meet in normal operation."""
        self.total_fetch_requests = 0
        """Partitions of fetch requests."""
        self.failed_fetch_requests = 0
        self.fetch_message_conversions = 0
        """Records that were down-converted for old consumers."""
        self.produce_message_conversions = 0
        """Records of producers that were written anew: in another format, with another codec."""

    def add(self, other: BrokerTopicMetrics) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BrokerTopicStats:
    """The counters of a broker, by topic."""

    __slots__ = (
        "_gone",
        "expired_delete_records",
        "expired_fetches",
        "expired_produces",
        "expired_produces_of",
        "invalid_magic_number_records",
        "invalid_message_crc_records",
        "invalid_offset_or_sequence_records",
        "no_key_compacted_topic_records",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replication_bytes_in",
        "replication_bytes_out",
        "topics",
    )

    def __init__(self) -> None:
        self.topics: defaultdict[str, BrokerTopicMetrics] = defaultdict(BrokerTopicMetrics)
        """Appends and reads that succeed, the most frequent events, are counted here by those who do them."""
        self._gone = BrokerTopicMetrics()
        """The sums of topics that the broker no longer hosts."""
        self.replication_bytes_in = 0
        """Fetched from leaders."""
        self.replication_bytes_out = 0
        """Sent to followers."""
        self.reassignment_bytes_in = 0
        """Of `replication_bytes_in`, those of partitions that a reassignment adds to this broker."""
        self.reassignment_bytes_out = 0
        """Of `replication_bytes_out`, those sent to replicas that a reassignment adds."""
        self.invalid_message_crc_records = 0
        self.invalid_magic_number_records = 0
        self.invalid_offset_or_sequence_records = 0
        self.no_key_compacted_topic_records = 0
        self.expired_produces = 0
        """Partitions of produce requests whose replicas did not have the records in time."""
        self.expired_produces_of: defaultdict[TopicPartition, int] = defaultdict(int)
        """The same of each partition that had one, until the broker hosts nothing of its topic."""
        self.expired_fetches = {"consumer": 0, "follower": 0}
        """Fetches that were answered because their wait was over."""
        self.expired_delete_records = 0
        """Partitions of DeleteRecords requests whose replicas did not follow in time."""

    def sum_up(self, total: BrokerTopicMetrics) -> Steps:
        """Add the counters of all topics, forgotten ones too, to `total`; a topic is a step."""
        for counters in [self._gone, *self.topics.values()]:
            total.add(counters)
            yield None

    def refused(self, topic: str, *, is_failure: bool, bytes_rejected: int) -> None:
        """A partition of a produce request was refused. Requests for unknown topics do not come so far."""
        counters = self.topics[topic]
        counters.total_produce_requests += 1
        counters.failed_produce_requests += is_failure
        counters.bytes_rejected += bytes_rejected

    def asked_for(self, topics: Iterable[str]) -> None:
        """The topics of the partitions that a fetch request reads. What it reads again after a wait does not count.

        Kafka: ReplicaManager.fetchMessages.
        """
        for topic, partitions in Counter(topics).items():
            self.topics[topic].total_fetch_requests += partitions

    def sent(self, topic: str, size: int) -> None:
        """Records of a partition were sent to a consumer."""
        self.topics[topic].bytes_out += size

    def converted_produced(self, topic: str, records: int) -> None:
        """So many records of a producer were written anew."""
        self.topics[topic].produce_message_conversions += records

    def converted_fetched(self, topic: str, records: int) -> None:
        """So many records were down-converted for a consumer."""
        self.topics[topic].fetch_message_conversions += records

    def produce_expired(self, topic_partition: TopicPartition) -> None:
        """The replicas of a partition did not have the records of a produce request in time."""
        self.expired_produces += 1
        self.expired_produces_of[topic_partition] += 1

    @property
    def counted_topics(self) -> set[str]:
        """The topics that have counters."""
        return {*self.topics, *(topic_partition.topic for topic_partition in self.expired_produces_of)}

    def forget_topics(self, topics: Set[str]) -> Steps:
        """Drop the counters of topics that the broker does not host, and keep them in the sums; a topic is a step.

        Kafka: ReplicaManager.maybeRemoveTopicMetrics.
        """
        for topic_partition in list(self.expired_produces_of):
            if topic_partition.topic in topics:
                self.expired_produces_of.pop(topic_partition, None)
            yield None
        for topic in topics:
            if topic in self.topics:
                self._gone.add(self.topics.pop(topic))
            yield None
