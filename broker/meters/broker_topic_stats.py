"""What a broker has received and sent, in all and for each topic.

Counted once for each partition of a request, never for each record, and only while metrics are on.

Kafka: BrokerTopicStats, BrokerTopicMetrics.
"""

from __future__ import annotations

from collections.abc import Callable


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
        """Reads of partitions for fetch requests."""
        self.failed_fetch_requests = 0
        self.fetch_message_conversions = 0
        """Down-conversions of the records of a partition, for old consumers."""


class BrokerTopicStats:
    """The counters of a broker. `all_topics` is kept beside the topics: a topic's counters end with the topic."""

    __slots__ = (
        "all_topics",
        "invalid_message_crc_records",
        "replication_bytes_in",
        "replication_bytes_out",
        "topics",
    )

    def __init__(self) -> None:
        self.all_topics = BrokerTopicMetrics()
        self.topics: dict[str, BrokerTopicMetrics] = {}
        self.replication_bytes_in = 0
        """Fetched from leaders."""
        self.replication_bytes_out = 0
        """Sent to followers."""
        self.invalid_message_crc_records = 0

    def topic(self, topic: str) -> BrokerTopicMetrics:
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = BrokerTopicMetrics()
        return found

    def appended(self, topic: str, messages: int, size: int) -> None:
        """A partition of a produce request was appended: so many records and bytes."""
        for counters in (self.topic(topic), self.all_topics):
            counters.total_produce_requests += 1
            counters.messages_in += messages
            counters.bytes_in += size

    def refused(self, topic: str, *, is_failure: bool, bytes_rejected: int) -> None:
        """A partition of a produce request was refused."""
        for counters in (self.topic(topic), self.all_topics):
            counters.total_produce_requests += 1
            counters.failed_produce_requests += is_failure
            counters.bytes_rejected += bytes_rejected

    def read(self, topic: str, *, is_failure: bool = False) -> None:
        """A partition was read for a fetch request."""
        for counters in (self.topic(topic), self.all_topics):
            counters.total_fetch_requests += 1
            counters.failed_fetch_requests += is_failure

    def sent(self, topic: str, size: int) -> None:
        """Records of a partition were sent to a consumer."""
        self.topic(topic).bytes_out += size
        self.all_topics.bytes_out += size

    def converted(self, topic: str) -> None:
        """Records of a partition were down-converted for a consumer."""
        self.topic(topic).fetch_message_conversions += 1
        self.all_topics.fetch_message_conversions += 1

    def forget_topics(self, exists: Callable[[str], bool]) -> None:
        """Drop the counters of deleted topics."""
        for topic in [topic for topic in self.topics if not exists(topic)]:
            del self.topics[topic]
