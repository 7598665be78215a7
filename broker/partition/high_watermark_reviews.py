"""Checks high watermarks after events other than an append or a fetch.

A high watermark depends on more than the ends of logs. In-sync replicas count, and so do followers that are alive and
were caught up a short while ago; and it does not move while the ISR is smaller than ``min.insync.replicas``. When all
producers wait for it with acks=all and the followers have everything, no append and no fetch comes to move it. So each
of these events has it checked:

    event                                                high watermarks that are checked
    which brokers are alive (UpdateMetadata)             partitions led here with a replica on one that died
    the configs of a topic                               the topic's
    ``min.insync.replicas`` of the broker                all
    followers have used up ``replica.lag.time.max.ms``   all, twice in that time: `isr_expiration`
    the ISR                                              the partition's: `in_sync_replicas`

The low watermark (the smallest log start offset of live replicas) rises when a replica dies, too: a DeleteRecords may
wait for that.

Apache Kafka checks when the ISR changes, and otherwise waits for the next append or fetch.
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
"""Partitions that one callback visits. Checking the followers of a partition takes some 4 microseconds."""


class HighWatermarkReviews:
    """The checks of a broker's partitions, in slices. `complete_delete_records` is called for each checked partition:
    its low watermark may have risen.
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
        """These brokers have left the metadata cache. A broker that returns cannot raise a high watermark."""
        if broker_ids:
            partitions = self._partitions.online_partitions()
            concerned = [each for each in partitions if not broker_ids.isdisjoint(each.in_sync.replicas)]
            self.walks.walk(concerned, self._check)

    def topic_config_changed(self, topic: str) -> None:
        indexes = self._metadata_cache.snapshot.partitions.get(topic, ())
        hosted = (self._partitions.hosted(TopicPartition(topic, index)) for index in indexes)
        self.walks.walk((partition for partition in hosted if partition is not None), self._check)

    def broker_config_changed(self) -> None:
        self.walks.walk(self._partitions.online_partitions(), self._check)

    def _check(self, partition: Partition) -> None:
        partition.in_sync.review_high_watermark()
        self._complete_delete_records(partition.topic_partition)
