"""High watermarks that may rise although nobody appends and nobody fetches.

What is committed depends on more than the ends of logs: an in-sync replica counts, and so does a follower that is not
in sync but alive and caught up a short while ago; and nothing is committed while the ISR is smaller than
``min.insync.replicas``. Producers with acks=all may all be waiting for the watermark and append nothing more, and the
followers have everything. Then nobody else looks at it, so each of these does:

    what has changed                                     whose high watermarks are looked at
    which brokers are alive (UpdateMetadata)             partitions led here with a replica on one that died
    the configs of a topic                               the topic's
    ``min.insync.replicas`` of the broker                all
    followers have used up ``replica.lag.time.max.ms``   all, twice in that time: `isr_expiration`
    the ISR                                              the partition's: `in_sync_replicas`

The log start that all live replicas have reached rises when one dies, too: a DeleteRecords may wait for that.

Apache Kafka looks when the ISR changes, and else waits for the next append or fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.walks import Walks

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.timer.system_timer import SystemTimer

PARTITIONS_AT_ONCE: Final = 500
"""Visited by one callback. Looking at the followers of a partition takes some 4 microseconds."""


class HighWatermarkReviews:
    """Of a broker's partitions, a few at a time. `complete_delete_records` is for each that was looked at: its low
    watermark may have risen.
    """

    def __init__(
        self,
        partitions: HostedPartitions,
        metadata_cache: MetadataCache,
        timer: SystemTimer,
        complete_delete_records: Callable[[TopicPartition], object],
    ) -> None:
        self._partitions = partitions
        self._complete_delete_records = complete_delete_records
        self._metadata_cache = metadata_cache
        self.walks = Walks(timer, PARTITIONS_AT_ONCE)

    def brokers_died(self, broker_ids: AbstractSet[int]) -> None:
        """These brokers have left the metadata cache. One that comes back raises nothing."""
        if broker_ids:
            partitions = self._partitions.online_partitions()
            concerned = [each for each in partitions if not broker_ids.isdisjoint(each.in_sync.replicas)]
            self.walks.walk(concerned, self._look)

    def topic_config_changed(self, topic: str) -> None:
        indexes = self._metadata_cache.snapshot.partitions.get(topic, ())
        hosted = (self._partitions.hosted(TopicPartition(topic, index)) for index in indexes)
        self.walks.walk((partition for partition in hosted if partition is not None), self._look)

    def broker_config_changed(self) -> None:
        self.walks.walk(self._partitions.online_partitions(), self._look)

    def _look(self, partition: Partition) -> None:
        partition.in_sync.review_high_watermark()
        self._complete_delete_records(partition.topic_partition)
