"""The state machine of a consumer group.

The members of a group repeatedly agree on an assignment of partitions. Each agreement is a *generation*. It takes two
steps, each with a barrier at its end:

    join   every member sends the protocols it supports. When all have joined (or the rebalance timeout has passed and
           the missing ones were removed), the coordinator selects a protocol that all support, increments the
           generation, and answers all joins at once. One member becomes the leader.
    sync   the leader computes the assignment and sends it; the syncs of the others are parked. When the assignment is
           in the log, all syncs are answered at once, each with the member's part of the assignment.

The five states:

    Empty                no members. The group exists as long as it has offsets, until they expire. Groups that only
                         store offsets ("simple consumers") are always in this state.
    PreparingRebalance   waiting for members to join. Joins are parked, heartbeats get REBALANCE_IN_PROGRESS, offsets
                         of the old generation may still be committed.
    CompletingRebalance  joins have been answered, waiting for the leader's assignment. Syncs are parked. A commit is
                         refused: the member knows the new generation, but not its part of the assignment.
    Stable               the assignment is in the log; heartbeats and commits are served, a sync gets the assignment.
    Dead                 removed or moved to another broker. Only operations in flight still refer to the object; they
                         check the state and stop. No transition leaves this state.

             +--------+   member joins    +--------------------+   all joined    +---------------------+
      o----->| Empty  |------------------>| PreparingRebalance |---------------->| CompletingRebalance |
             +--------+<------------------+--------------------+<----------------+---------------------+
                 |        nobody joined      ^              a member joins, leaves,         |
         deleted |                           |              fails or does not sync          | assignment stored
        unloaded v                           |                                              v
             +--------+                      |   join, leave, failure, leader rejoins  +--------+
             |  Dead  |<--- any state,       +-----------------------------------------| Stable |
             +--------+     on unload                                                  +--------+

Only `GroupLifecycle.fire` changes the state; it raises if `TRANSITIONS` has no entry for the state and event. The
error for a request that is otherwise valid (known member, current generation, not fenced) comes from `ANSWERS`. The
two tables are the whole state machine, except for JoinGroup, which depends on the joining client too (joining.py).

Kafka: GroupState, GroupMetadata.transitionTo.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from odradek.protocol.errors import ErrorCode
from odradek.timer.clock import Clock


class GroupState(Enum):
    """The values are the names in ListGroups and DescribeGroups responses."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """Events that change a group's state."""

    REBALANCE = "members have to join again"
    ALL_JOINED = "the join barrier is passed, with members"
    NOBODY_JOINED = "the join barrier is passed, without members"
    ASSIGNMENT_STORED = "the leader's assignment is committed to the log"
    REMOVED = "the group is deleted, has expired, or its partition moved away"


class GroupRequest(Enum):
    """Requests whose error depends only on the state, once the member is validated."""

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

# NONE: served. A sync in CompletingRebalance is parked until the assignment is stored.
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
    """The event has no transition from the current state: a bug in the coordinator."""


class GroupLifecycle:
    """The state of one group and the wall-clock time at which it was entered.

    `since_ms` is None for a group whose record in the log does not have the time (value versions 0 and 1).
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
        """Make the transition; the only place that changes a group's state. Raises IllegalTransitionError."""
        target = TRANSITIONS[self._state].get(event)
        if target is None:
            raise IllegalTransitionError(f"{event.name} in state {self._state.value}")
        self._state = target
        self.since_ms = self._clock.time_ms()
        return target

    def answer(self, request: GroupRequest) -> ErrorCode:
        """The error for an otherwise valid request in this state."""
        return ANSWERS[request][self._state]
