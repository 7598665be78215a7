"""Who leads a partition and who is in sync: the value behind a partition's state node.

Two epochs order what happens to a partition. The *leader epoch* grows with every election and fences old leaders. The
*partition epoch* is the version of the state node and grows with every write of it, ISR changes by the leader included.

Kafka: kafka.api.LeaderAndIsr and LeaderIsrAndControllerEpoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""The leader that UpdateMetadata names for a partition whose topic is being deleted: receivers forget it."""
NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch in StopReplica that is obeyed whatever the receiver's epoch is, because the topic goes away."""


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected uncleanly and has not reported back since (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """Who leads a partition, under which epoch, and who is in sync."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = 0

    def with_new_leader(self, leader: int) -> LeaderAndIsr:
        return self.with_new_leader_and_isr(leader, self.isr)

    def with_new_leader_and_isr(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        return replace(self, leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1)

    def with_new_epoch(self) -> LeaderAndIsr:
        """The same leader and ISR under the next leader epoch, so that replicas take notice."""
        return self.with_new_leader_and_isr(self.leader, self.isr)

    def with_partition_epoch(self, partition_epoch: int) -> LeaderAndIsr:
        return replace(self, partition_epoch=partition_epoch)

    def equals_allow_stale_partition_epoch(self, other: LeaderAndIsr) -> bool:
        """Whether `other`, which may be newer, says the same: then a repeated AlterPartition has succeeded already."""
        return (
            self.leader == other.leader
            and self.leader_epoch == other.leader_epoch
            and self.isr == other.isr
            and self.leader_recovery_state == other.leader_recovery_state
            and self.partition_epoch <= other.partition_epoch
        )

    def __str__(self) -> str:
        return (
            f"LeaderAndIsr(leader={self.leader}, leaderEpoch={self.leader_epoch}, isr={list(self.isr)}, "
            f"leaderRecoveryState={self.leader_recovery_state.name}, partitionEpoch={self.partition_epoch})"
        )


class LeaderIsrAndControllerEpoch(NamedTuple):
    """A partition's leadership and the epoch of the controller that wrote it."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int
