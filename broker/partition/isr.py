"""The ISR of a partition at its leader: a state machine of pure decisions.

A leader proposes an ISR to the controller (KIP-497). Between the proposal and the answer the leader cannot know which
ISR holds, so it counts replicas on the safe side:

============== ======================================= =======================================================
state          `isr`: decides whether acks=-1 is taken `maximal_isr`: these replicas must have a committed record
============== ======================================= =======================================================
committed      the controller's last answer            the same
pending expand the committed one                       with the added replica, which may be in the ISR already
pending shrink the committed one                       the same: the removed replicas may still be in the ISR
============== ======================================= =======================================================

============== ========================================= =================================================
from           event                                     to
============== ========================================= =================================================
committed      a follower has caught up                  pending expand; propose it
committed      followers lag for too long                pending shrink; propose it
pending        answer: applied                           committed, with the ISR of the answer
pending        answer: certainly not applied             committed, as before
pending        answer: perhaps applied, or outdated      pending, until the next LeaderAndIsr
pending        answer: any other error                   pending; propose it again
any            LeaderAndIsr                              committed; the answer to a pending proposal is ignored
============== ========================================= =================================================

So a partition has at most one change in flight.

Kafka: PartitionState, PendingPartitionChange, CommittedPartitionState, PendingExpandIsr, PendingShrinkIsr,
Partition.handleAlterPartitionUpdate, Partition.handleAlterPartitionError, Partition.effectiveMinIsr.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final

from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from odradek.broker.partition.replica import Replica
    from odradek.storage.offsets import LogOffsetMetadata


class PartitionState:
    """One state; it is never changed. An ISR is in the order in which its replicas joined.

    States are compared by identity: an answer belongs to the very proposal that was sent.
    """

    __slots__ = ("isr", "maximal_isr")

    is_inflight: ClassVar[bool]

    def __init__(self, isr: tuple[int, ...], maximal_isr: tuple[int, ...]) -> None:
        self.isr: Final = isr
        self.maximal_isr: Final = maximal_isr


class CommittedPartitionState(PartitionState):
    """The controller has confirmed this ISR."""

    __slots__ = ()

    is_inflight = False

    def __init__(self, isr: Iterable[int]) -> None:
        members = tuple(isr)
        super().__init__(members, members)

    def expand(self, replica: int, leader: int, leader_epoch: int, partition_epoch: int) -> PendingExpandIsr:
        """Propose that `replica` joins."""
        proposed = LeaderAndIsr(
            leader=leader, isr=(*self.isr, replica), leader_epoch=leader_epoch, partition_epoch=partition_epoch
        )
        return PendingExpandIsr(self, proposed)

    def shrink(
        self, replicas: Collection[int], leader: int, leader_epoch: int, partition_epoch: int
    ) -> PendingShrinkIsr:
        """Propose that `replicas` leave."""
        proposed = LeaderAndIsr(
            leader=leader,
            isr=tuple(member for member in self.isr if member not in replicas),
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
        )
        return PendingShrinkIsr(self, proposed)


class PendingPartitionChange(PartitionState):
    """A proposal (`sent_leader_and_isr`) is in flight."""

    __slots__ = ("last_committed_state", "sent_leader_and_isr")

    is_inflight = True

    def __init__(
        self,
        last_committed_state: CommittedPartitionState,
        sent_leader_and_isr: LeaderAndIsr,
        maximal_isr: tuple[int, ...],
    ) -> None:
        super().__init__(last_committed_state.isr, maximal_isr)
        self.last_committed_state: Final = last_committed_state
        self.sent_leader_and_isr: Final = sent_leader_and_isr


class PendingExpandIsr(PendingPartitionChange):
    """A replica is to join."""

    __slots__ = ()

    def __init__(self, last_committed_state: CommittedPartitionState, sent_leader_and_isr: LeaderAndIsr) -> None:
        super().__init__(last_committed_state, sent_leader_and_isr, sent_leader_and_isr.isr)


class PendingShrinkIsr(PendingPartitionChange):
    """Replicas are to leave."""

    __slots__ = ()

    def __init__(self, last_committed_state: CommittedPartitionState, sent_leader_and_isr: LeaderAndIsr) -> None:
        super().__init__(last_committed_state, sent_leader_and_isr, last_committed_state.isr)


NO_ISR: Final = CommittedPartitionState(())
"""The state while the partition is not led here."""


class Outcome(Enum):
    """What the answer to a proposal means for the leader."""

    APPLIED = auto()
    NOT_APPLIED = auto()
    WAIT = auto()
    PROPOSE_AGAIN = auto()


_NOT_APPLIED: Final = frozenset((ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA))
"""The controller agrees with our partition epoch and has written nothing. Controller epochs only grow, so no other
controller can have written the proposal either."""

_WAIT: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""The controller's state is newer: keep the proposal pending until the next LeaderAndIsr."""


def outcome(answer: LeaderAndIsr | ErrorCode, leader_epoch: int, partition_epoch: int) -> Outcome:
    """What an answer means for a leader with these epochs. An outdated answer means WAIT."""
    if isinstance(answer, LeaderAndIsr):
        is_ours = answer.leader_epoch == leader_epoch and answer.partition_epoch >= partition_epoch
        return Outcome.APPLIED if is_ours else Outcome.WAIT
    if answer in _NOT_APPLIED:
        return Outcome.NOT_APPLIED
    return Outcome.WAIT if answer in _WAIT else Outcome.PROPOSE_AGAIN


def high_watermark_candidate(
    leader_end: LogOffsetMetadata,
    replicas: Iterable[Replica],
    maximal_isr: Collection[int],
    may_join: Callable[[Replica], bool],
) -> LogOffsetMetadata | None:
    """The smallest end offset of the leader and of every replica that counts; None while one of these replicas has not
    fetched yet.

    Replicas of the maximal ISR count, and replicas that have caught up and may join. Otherwise the high watermark would
    stay ahead of a joining follower, and the follower could never join.
    """
    candidate = leader_end
    for replica in replicas:
        end = replica.log_end_offset
        if end is not None and end.message_offset >= candidate.message_offset:
            continue
        if replica.broker_id in maximal_isr or may_join(replica):
            if end is None:
                return None
            candidate = end
    return candidate


def effective_min_isr(min_insync_replicas: int, replication_factor: int) -> int:
    """The smallest ISR that acks=-1 accepts: at most the number of replicas."""
    return min(min_insync_replicas, replication_factor)
