"""The life of a consumer group.

A group has no leader election and no log of its own: it is a list of members which, again and again, agree on who
does what. One round of agreement is a *generation*, and a generation is made in two steps with a barrier after each:

    join   every member says which protocols it speaks. When all have spoken (or the rebalance timeout has passed and
           the rest have been dropped) the coordinator picks the protocol all of them know, raises the generation, and
           answers every join at once; one member is told it leads.
    sync   the leader computes the assignment and sends it in; everybody else waits. When the assignment is in the
           log, every sync is answered at once, each with its share.

The five states say between which barriers the group stands:

    Empty                no members. Offsets may remain, and keep the group alive until they expire. Groups that only
                         store offsets ("simple consumers") spend their life here.
    PreparingRebalance   waiting for members to join. Joins are parked, heartbeats are told to rejoin, offsets of the
                         generation that ends may still be committed.
    CompletingRebalance  joins have been answered, waiting for the leader's assignment. Syncs are parked. A commit is
                         refused: the member knows the new generation, but not yet what it owns in it.
    Stable               the assignment is in the log; heartbeats and commits are served, syncs repeat the assignment.
    Dead                 removed or moved to another broker. Only operations in flight still refer to the object; they
                         find the state and turn away. Nothing leaves this state.

             +--------+   member joins    +--------------------+   all joined    +---------------------+
      o----->| Empty  |------------------>| PreparingRebalance |---------------->| CompletingRebalance |
             +--------+<------------------+--------------------+<----------------+---------------------+
                 |        nobody joined      ^              a member joins, leaves,         |
         deleted |                           |              fails or does not sync          | assignment stored
        unloaded v                           |                                              v
             +--------+                      |   join, leave, failure, leader rejoins  +--------+
             |  Dead  |<--- any state,       +-----------------------------------------| Stable |
             +--------+     on unload                                                  +--------+

Two rules. The state is changed by `GroupLifecycle.fire` and by nothing else; an event that has no row for the state
is a bug and raises. And what a state means for a request that is otherwise valid (known member, right generation, not
fenced) is looked up in `ANSWERS`, so that the two tables below are the whole state machine. JoinGroup is not in the
table: what it does depends on who joins as much as on the state (see joining.py).

Kafka: GroupState and GroupMetadata.transitionTo.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from odradek.protocol.errors import ErrorCode
from odradek.timer.clock import Clock


class GroupState(Enum):
    """Values are the names clients see in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """What moves a group from state to state."""

    REBALANCE = "members have to join again"
    ALL_JOINED = "the join barrier is passed, with members"
    NOBODY_JOINED = "the join barrier is passed, without members"
    ASSIGNMENT_STORED = "the leader's assignment is committed to the log"
    REMOVED = "the group is deleted, has expired, or its partition moved away"


class GroupRequest(Enum):
    """Requests whose fate follows from the state alone once the member is known to be valid."""

    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit"
    DELETE = "DeleteGroups"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = GroupState

TRANSITIONS: Mapping[GroupState, Mapping[GroupEvent, GroupState]] = {
    _EMPTY: {GroupEvent.REBALANCE: _PREPARING, GroupEvent.REMOVED: _DEAD},
    _PREPARING: {
        GroupEvent.ALL_JOINED: _COMPLETING,
        GroupEvent.NOBODY_JOINED: _EMPTY,
        GroupEvent.REMOVED: _DEAD,
    },
    _COMPLETING: {
        GroupEvent.ASSIGNMENT_STORED: _STABLE,
        GroupEvent.REBALANCE: _PREPARING,
        GroupEvent.REMOVED: _DEAD,
    },
    _STABLE: {GroupEvent.REBALANCE: _PREPARING, GroupEvent.REMOVED: _DEAD},
    _DEAD: {GroupEvent.REMOVED: _DEAD},
}

_E = ErrorCode

# NONE: served. A sync in CompletingRebalance is served by parking it until the assignment is stored.
ANSWERS: Mapping[GroupRequest, Mapping[GroupState, ErrorCode]] = {
    GroupRequest.SYNC: {
        _EMPTY: _E.UNKNOWN_MEMBER_ID,
        _PREPARING: _E.REBALANCE_IN_PROGRESS,
        _COMPLETING: _E.NONE,
        _STABLE: _E.NONE,
        _DEAD: _E.COORDINATOR_NOT_AVAILABLE,
    },
    GroupRequest.HEARTBEAT: {
        _EMPTY: _E.UNKNOWN_MEMBER_ID,
        _PREPARING: _E.REBALANCE_IN_PROGRESS,
        _COMPLETING: _E.NONE,
        _STABLE: _E.NONE,
        _DEAD: _E.COORDINATOR_NOT_AVAILABLE,
    },
    GroupRequest.COMMIT: {
        _EMPTY: _E.NONE,
        _PREPARING: _E.NONE,
        _COMPLETING: _E.REBALANCE_IN_PROGRESS,
        _STABLE: _E.NONE,
        _DEAD: _E.COORDINATOR_NOT_AVAILABLE,
    },
    GroupRequest.DELETE: {
        _EMPTY: _E.NONE,
        _PREPARING: _E.NON_EMPTY_GROUP,
        _COMPLETING: _E.NON_EMPTY_GROUP,
        _STABLE: _E.NON_EMPTY_GROUP,
        _DEAD: _E.GROUP_ID_NOT_FOUND,
    },
}


class IllegalTransitionError(RuntimeError):
    """An event came that the table does not know in this state: a bug in the coordinator."""


class GroupLifecycle:
    """The state of one group and the wall-clock time it was entered.

    `since_ms` is None for a group whose record in the log is too old to carry the time (value versions 0 and 1).
    """

    __slots__ = ("_clock", "_state", "since_ms")

    def __init__(self, clock: Clock, state: GroupState = GroupState.EMPTY) -> None:
        self._clock = clock
        self._state = state
        self.since_ms: int | None = clock.time_ms()

    @property
    def state(self) -> GroupState:
        return self._state

    @property
    def can_rebalance(self) -> bool:
        return GroupEvent.REBALANCE in TRANSITIONS[self._state]

    def fire(self, event: GroupEvent) -> GroupState:
        """Take the transition; the only place where a group's state changes."""
        target = TRANSITIONS[self._state].get(event)
        if target is None:
            raise IllegalTransitionError(f"{event.name} in state {self._state.value}")
        self._state = target
        self.since_ms = self._clock.time_ms()
        return target

    def answer(self, request: GroupRequest) -> ErrorCode:
        """What this state answers to an otherwise valid request."""
        return ANSWERS[request][self._state]
