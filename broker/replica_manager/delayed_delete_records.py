"""A DeleteRecords that waits until every live replica has moved its log start.

It is also answered when this broker stops to lead, or to host, a partition. Apache Kafka looks at such a request only
when the high watermark moves or a follower fetches, so that it waits for its time-out.

Kafka: DelayedDeleteRecords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.broker.fetch.results import LogDeleteRecordsResult
from odradek.broker.replica_manager.delayed_partitions import DelayedPartitions
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.protocol.topic_partition import TopicPartition


class DelayedDeleteRecords(DelayedPartitions[LogDeleteRecordsResult]):
    """A result without an error is pending until the low watermark reaches its `requested_offset`."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, LogDeleteRecordsResult],
        partitions: HostedPartitions,
        respond: Callable[[Mapping[TopicPartition, LogDeleteRecordsResult]], None],
    ) -> None:
        super().__init__(timeout_ms, results, respond)
        self._partitions = partitions

    def on_expiration(self) -> None:
        if self._partitions.topic_stats is not None:
            self._partitions.topic_stats.expired_delete_records += len(self._pending)

    def settle(self, topic_partition: TopicPartition, result: LogDeleteRecordsResult) -> bool:
        if topic_partition not in self._partitions.by_name:
            result.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # whatever the metadata says
            result.low_watermark = -1
            return True
        try:
            low_watermark = self._partitions.partition(topic_partition).low_watermark()
        except KafkaError as error:
            result.error = error.code
            result.low_watermark = -1
            return True
        if low_watermark < result.requested_offset:
            return False
        result.low_watermark = low_watermark
        return True
