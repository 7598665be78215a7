"""The in-sync replicas of a partition as its leader sees them: a small state machine, decided purely.

A leader does not change its ISR, it proposes one to the controller (KIP-497), and from the proposal to the answer
nobody here knows which one holds. Whatever counts replicas is on the safe side meanwhile:

============== ==================================== ======================================================
state          `isr`: is acks=-1 taken at all?      `maximal_isr`: who has to have a record before it is committed?
============== ==================================== ======================================================
committed      what the controller said last        the same
pending expand the committed one                    with the replica to be added, which may be in it already
pending shrink the committed one                    the same: the replicas to be removed may be in it still
============== ==================================== ======================================================

============== ========================================= =================================================
from           by                                        to
============== ========================================= =================================================
committed      a follower that has caught up             pending expand, proposed
committed      followers that have not for too long      pending shrink, proposed
pending        an answer: done                           committed, as the answer says
pending        an answer: certainly not done             committed, as before
pending        an answer: perhaps done, perhaps outdated pending, until the next LeaderAndIsr
pending        an answer: anything else                  pending, proposed again
any            LeaderAndIsr                              committed; the answer to what was pending is ignored
============== ========================================= =================================================

So a partition has one change in flight at most. `PartitionState` of Kafka is `IsrState` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from odradek.broker.partition.replica import Replica
    from odradek.storage.offsets import LogOffsetMetadata


@dataclass(frozen=True, slots=True, eq=False)
class IsrState:
    """One state. The order of an ISR is that in which replicas joined it. `proposed` is None when it is committed.

    Two states are the same only if they are one object: an answer belongs to the proposal it was given to.
    """

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    proposed: LeaderAndIsr | None = None

    @classmethod
    def committed(cls, isr: Iterable[int]) -> IsrState:
        members = tuple(isr)
        return cls(members, members)

    @property
    def is_in_flight(self) -> bool:
        return self.proposed is not None

    def expand(self, replica: int, leader: int, leader_epoch: int, partition_epoch: int) -> IsrState:
        """From committed: `replica` is to join."""
        proposed = LeaderAndIsr(
            leader=leader, isr=(*self.isr, replica), leader_epoch=leader_epoch, partition_epoch=partition_epoch
        )
        return IsrState(self.isr, proposed.isr, proposed)

    def shrink(self, replicas: Collection[int], leader: int, leader_epoch: int, partition_epoch: int) -> IsrState:
        """From committed: `replicas` are to leave."""
        proposed = LeaderAndIsr(
            leader=leader,
            isr=tuple(member for member in self.isr if member not in replicas),
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
        )
        return IsrState(self.isr, self.isr, proposed)

    def reverted(self) -> IsrState:
        """From pending: back to what was committed."""
        return IsrState.committed(self.isr)


NO_ISR: Final = IsrState.committed(())
"""Of a partition that is not led here."""


class Answer(Enum):
    """What the answer to a proposal means."""

    DONE = auto()
    NOT_DONE = auto()
    WAIT = auto()
    PROPOSE_AGAIN = auto()


_NOT_DONE: Final = frozenset((ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA))
"""With these the controller says that our partition epoch is right and that nothing was written, and since controller
epochs only grow, no other controller can have written it either."""

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
"""Here it knows something that we do not know yet: what it is comes with a LeaderAndIsr."""


def meaning(answer: LeaderAndIsr | ErrorCode, leader_epoch: int, partition_epoch: int) -> Answer:
    """What an answer means to a leader of these epochs. One that is older than what we know tells nothing."""
    if isinstance(answer, LeaderAndIsr):
        is_ours = answer.leader_epoch == leader_epoch and answer.partition_epoch >= partition_epoch
        return Answer.DONE if is_ours else Answer.WAIT
    if answer in _NOT_DONE:
        return Answer.NOT_DONE
    return Answer.WAIT if answer in _WAIT else Answer.PROPOSE_AGAIN


def high_watermark_candidate(
    leader_end: LogOffsetMetadata,
    replicas: Iterable[Replica],
    maximal_isr: Collection[int],
    may_join: Callable[[Replica], bool],
) -> LogOffsetMetadata | None:
    """The offset up to which the leader and every replica that counts has the log; None while one of them has not
    fetched yet.

    Besides the maximal ISR those count that have caught up and may join: else the high watermark would run ahead of a
    follower that tries to, and it never could.
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
    """How small the ISR may be: no topic asks for more replicas than it has."""
    return min(min_insync_replicas, replication_factor)
