"""The leader's replication throttle: limits the bandwidth of replicas that are being added or moved.

A partition is throttled when its topic's ``leader.replication.throttled.replicas`` names it on this broker (or ``*``).
While the bytes sent of such partitions exceed ``leader.replication.throttled.rate``, their followers get no records.
In-sync followers are exempt: they would fall out of the ISR.

Kafka: ReplicaManager.shouldLeaderThrottle, ReplicationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.fetch.replication_quota import is_throttled

if TYPE_CHECKING:
    from odradek.broker.fetch.replication_quota import ReplicationQuota
    from odradek.broker.partition.partition import Partition


class LeaderThrottle:
    """The throttle of one broker as a leader."""

    def __init__(self, quota: ReplicationQuota, broker_id: int) -> None:
        self._quota = quota
        self._broker_id = broker_id

    def covers(self, partition: Partition) -> bool:
        """Whether the partition is throttled: its bytes count."""
        log = partition.log
        if log is None:
            return False
        throttled = log.local_log.config.leader_replication_throttled_replicas
        return bool(throttled) and is_throttled(throttled, partition.topic_partition.partition, self._broker_id)

    def holds_back(self, partition: Partition, follower_id: int) -> bool:
        """Whether a follower gets no records of the partition now."""
        return follower_id not in partition.in_sync.state.isr and self.covers(partition) and self._quota.is_exceeded

    def record(self, size_in_bytes: int) -> None:
        """Count bytes of throttled partitions that are sent to a follower."""
        self._quota.record(size_in_bytes)

    @property
    def bytes_per_second(self) -> float:
        """Of throttled partitions, to followers."""
        return self._quota.bytes_per_second
