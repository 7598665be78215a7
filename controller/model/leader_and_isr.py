"""The leader and the ISR of a partition, the value of its state node.

Two epochs order the changes of a partition. The *leader epoch* grows with every election and fences old leaders. The
*partition epoch* is the version of the state node and grows with every write of it, ISR changes by the leader included.

Kafka: LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""The leader in UpdateMetadata for a partition whose topic is being deleted: receivers remove the partition."""
NO_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch in StopReplica of a topic being deleted; receivers accept it for any epoch of their own."""


class LeaderRecoveryState(IntEnum):
    """RECOVERING: the leader was elected uncleanly and has not yet reported that it has recovered (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class LeaderAndIsr(NamedTuple):
    """The leader of a partition, its epochs, and the ISR."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = 0
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = 0

    def with_new_leader(self, leader: int) -> LeaderAndIsr:
        return self.with_new_leader_and_isr(leader, self.isr)

    def with_new_leader_and_isr(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        return self._replace(leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1)

    def with_new_epoch(self) -> LeaderAndIsr:
        """The same leader and ISR with the next leader epoch, so that replicas apply the request."""
        return self.with_new_leader_and_isr(self.leader, self.isr)

    def with_partition_epoch(self, partition_epoch: int) -> LeaderAndIsr:
        return self._replace(partition_epoch=partition_epoch)

    def equals_allow_stale_partition_epoch(self, other: LeaderAndIsr) -> bool:
        """Whether `other` has the same state, maybe under a newer partition epoch: a repeated AlterPartition then."""
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
