"""A Produce with acks=-1 that waits for its replicas.

The records are in the leader's log already. The operation completes when, for every partition, the high watermark has
passed the appended records or the partition has an error (no longer the leader, deleted). At the time-out the pending
partitions get REQUEST_TIMED_OUT.

Kafka: DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.replica_manager.delayed_partitions import DelayedPartitions
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.protocol.topic_partition import TopicPartition


class DelayedProduce(DelayedPartitions[LogAppendResult]):
    """`results` are the local appends; those without an error are pending until their `required_offset` is reached."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, LogAppendResult],
        partitions: HostedPartitions,
        respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
    ) -> None:
        super().__init__(timeout_ms, results, respond)
        self._partitions = partitions

    def on_expiration(self) -> None:
        if self._partitions.topic_stats is not None:
            for topic_partition in self._pending:
                self._partitions.topic_stats.produce_expired(topic_partition)

    def settle(self, topic_partition: TopicPartition, result: LogAppendResult) -> bool:
        try:
            partition = self._partitions.partition(topic_partition)
        except KafkaError as error:
            result.error = error.code
            return True
        reached, code = partition.in_sync.check_enough_replicas_reach_offset(result.required_offset)
        result.error = code
        return reached or code != ErrorCode.NONE
