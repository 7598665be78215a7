"""Rebalancing: how a group gets from one generation to the next.

Everything that can happen to a member ends here, and every transition between Empty, PreparingRebalance,
CompletingRebalance and Stable is fired in this file (Dead comes from outside, see group_metadata_manager.py). Two
barriers hold requests back, each a delayed operation that completes when the last member has come and expires when
the rebalance timeout is over:

    DelayedJoin   watched under GroupJoinKey while PreparingRebalance. Completing means: members that did not rejoin
                  are dropped (static ones stay, they are expected back), a leader that did not is replaced, the
                  generation begins and every parked join is answered. If nobody rejoined the barrier is put up again,
                  until sessions expire.
    InitialDelayedJoin   the same for a group that was empty. It does not complete early: others are probably about to
                  join, and each rebalance saved is worth the wait. An arrival within the
                  `group.initial.rebalance.delay.ms` prolongs it by as much, up to the rebalance timeout.
    DelayedSync   watched under GroupSyncKey from the start of a generation. Members that have not synced when it
                  expires are dropped, and the rest has to rebalance.

Answering a request may bring the next one of the same connection in before the answer has returned. So a parked
request is taken out first, then the books are brought in order, and the answers are given last.

Nothing that is parked is ever forgotten: also a request that a repeated one takes the place of, and the sync of a
member that is removed, are answered. (Kafka drops these callbacks and leaves it to the client's request timeout.)

Kafka: the rebalance half of GroupCoordinator, DelayedJoin, InitialDelayedJoin and DelayedSync.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.sessions import MemberSessions
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupEvent, GroupState
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.group.state.responses import UNKNOWN_MEMBER_ID, join_error, sync_error
from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)

MIN_IDLE_REBALANCE_MS = 100
"""How long the join barrier stands at least when it is put up again because nobody came. Clients choose the rebalance
timeout, and one of zero would have the broker do nothing else."""

StoreGroup = Callable[[GroupMetadata, dict[str, bytes], Callable[[ErrorCode], None]], None]
"""Writes the group with an assignment to the log; the error is one to give to clients."""

SyncAnswers = list[tuple[Respond[SyncGroupResponse], SyncGroupResponse]]


@dataclass(frozen=True, slots=True)
class GroupJoinKey:
    """Watch key of the join barrier."""

    group_id: str


@dataclass(frozen=True, slots=True)
class GroupSyncKey:
    """Watch key of the sync barrier."""

    group_id: str


class DelayedJoin(DelayedOperation):
    """Waits for all members to join; the rest are dropped when it expires."""

    __slots__ = ("_group", "_rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: GroupMetadata, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._rebalancer = rebalancer
        self._group = group

    def try_complete(self) -> bool:
        return (self._group.is_dead or self._group.has_all_members_joined) and self.force_complete()

    def on_complete(self) -> None:
        self._rebalancer.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """Waits out the initial delay even if everybody known has joined, and again as long as others keep coming."""

    __slots__ = ("_remaining_ms",)

    def __init__(self, rebalancer: Rebalancer, group: GroupMetadata, delay_ms: int, remaining_ms: int) -> None:
        super().__init__(rebalancer, group, delay_ms)
        self._remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        return self._group.is_dead and self.force_complete()

    def on_complete(self) -> None:
        if self._group.new_member_added and self._remaining_ms != 0 and not self._group.is_dead:
            self._group.new_member_added = False
            self._rebalancer.extend_initial_delay(self._group, self.delay_ms, self._remaining_ms)
        else:
            super().on_complete()


class DelayedSync(DelayedOperation):
    """Waits for all members of a generation to sync."""

    __slots__ = ("_generation_id", "_group", "_rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: GroupMetadata, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self._rebalancer = rebalancer
        self._group = group
        self._generation_id = group.generation_id

    def try_complete(self) -> bool:
        return not self._is_waited_for and self.force_complete()

    @property
    def _is_waited_for(self) -> bool:
        group = self._group
        return (
            group.generation_id == self._generation_id
            and group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            and not group.has_received_sync_from_all_members
        )

    def on_complete(self) -> None:
        """Nothing: the syncs are answered when the assignment is stored."""

    def on_expiration(self) -> None:
        if self._is_waited_for:
            self._rebalancer.expire_pending_sync(self._group)


class Rebalancer:
    """Moves groups through their generations."""

    __slots__ = ("_config", "_purgatory", "_store_group", "sessions")

    def __init__(self, config: GroupConfig, timer: SystemTimer, store_group: StoreGroup) -> None:
        self._config = config
        self._store_group = store_group
        self._purgatory = DelayedOperationPurgatory[DelayedOperation]("Rebalance", timer)
        self.sessions = MemberSessions(
            timer,
            on_expired=lambda group, member: self.remove_member(
                group, member, f"removing member {member.member_id} on heartbeat expiration"
            ),
            on_pending_expired=self.remove_pending_member,
        )

    @property
    def open_barrier_count(self) -> int:
        """Join and sync barriers that are up."""
        return self._purgatory.num_delayed

    # -- members come and change -----------------------------------------------------------------------------

    def add_member(
        self, group: GroupMetadata, member: MemberMetadata, respond: Respond[JoinGroupResponse], reason: str
    ) -> None:
        """A new member joins. Until it is answered its session lasts as long as a join may take."""
        member.is_new = True
        if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
            group.new_member_added = True
        group.add(member, respond)
        self.sessions.start_joining(group, member)
        self.maybe_prepare(group, reason)

    def maybe_prepare(self, group: GroupMetadata, reason: str) -> None:
        if group.lifecycle.can_rebalance:
            self.prepare(group, reason)

    def prepare(self, group: GroupMetadata, reason: str) -> None:
        """Begin a rebalance: parked syncs are sent back to join, and the join barrier goes up."""
        answers: SyncAnswers = []
        if group.state is GroupState.COMPLETING_REBALANCE:
            answers = self._abandon_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._drop_sync_barrier(group)
        delay_ms = self._config.group_initial_rebalance_delay_ms
        barrier: DelayedJoin
        if group.state is GroupState.EMPTY:
            barrier = InitialDelayedJoin(self, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        else:
            barrier = DelayedJoin(self, group, group.rebalance_timeout_ms)
        group.lifecycle.fire(GroupEvent.REBALANCE)
        _log.info(
            "Preparing to rebalance group %s with old generation %d (reason: %s)",
            group.group_id,
            group.generation_id,
            reason,
        )
        self._watch_join(barrier, group)
        _give(answers)

    def check_join_barrier(self, group: GroupMetadata) -> None:
        """Somebody joined or left: perhaps nobody is missing now."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self._purgatory.check_and_complete(GroupJoinKey(group.group_id))

    # -- members go ------------------------------------------------------------------------------------------

    def remove_member(self, group: GroupMetadata, member: MemberMetadata, reason: str) -> None:
        """A member left or failed. What it has parked is answered so that, if it lives, it starts over."""
        parked_join, parked_sync = group.take_join(member), member.take_sync()
        group.remove(member.member_id)
        self.sessions.end(group, member.member_id)
        match group.state:
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                self.maybe_prepare(group, reason)
            case GroupState.PREPARING_REBALANCE:
                self.check_join_barrier(group)
            case GroupState.EMPTY | GroupState.DEAD:
                pass
        if parked_join is not None:
            parked_join(join_error(UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID))
        if parked_sync is not None:
            parked_sync(sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    def remove_pending_member(self, group: GroupMetadata, member_id: str) -> None:
        """A client that was given an id will not come back with it."""
        group.remove(member_id)
        self.sessions.end(group, member_id)
        self.check_join_barrier(group)

    # -- the join barrier ------------------------------------------------------------------------------------

    def extend_initial_delay(self, group: GroupMetadata, waited_ms: int, remaining_ms: int) -> None:
        """Others came while the group was forming: wait for more, within the rebalance timeout."""
        delay_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
        self._watch_join(InitialDelayedJoin(self, group, delay_ms, max(remaining_ms - waited_ms, 0)), group)

    def complete_join(self, group: GroupMetadata) -> None:
        """All have joined, or time is up: begin the next generation with those who are there."""
        for member in list(group.not_yet_rejoined()):
            if not member.is_static:
                _log.info("Group %s removed %r, which has not rejoined", group.group_id, member)
                group.remove(member.member_id)
                self.sessions.end(group, member.member_id)
        if group.is_dead:
            return
        if len(group) and not group.elect_joined_leader():
            _log.error("Group %s could not complete rebalance because no members rejoined", group.group_id)
            delay_ms = max(group.rebalance_timeout_ms, MIN_IDLE_REBALANCE_MS)
            self._watch_join(DelayedJoin(self, group, delay_ms), group)
            return
        group.init_next_generation()
        if group.state is GroupState.EMPTY:
            _log.info("Group %s with generation %d is now empty", group.group_id, group.generation_id)
            self._store_group(group, {}, lambda error: _warn_if_not_stored(group, error))
        else:
            self._answer_joins(group)

    def _answer_joins(self, group: GroupMetadata) -> None:
        _log.info("Stabilized group %s generation %d with %d members", group.group_id, group.generation_id, len(group))
        answers = []
        for member in group.members:
            respond = group.take_join(member)
            if respond is not None:
                is_leader = group.is_leader(member.member_id)
                answers.append((respond, group.join_success(member.member_id, with_members=is_leader)))
            self.sessions.renew(group, member)
            member.is_new = False
            group.expect_sync_from(member.member_id)
        barrier = DelayedSync(self, group, group.rebalance_timeout_ms)
        self._purgatory.try_complete_else_watch(barrier, [GroupSyncKey(group.group_id)])
        for respond, response in answers:
            respond(response)

    def _watch_join(self, barrier: DelayedJoin, group: GroupMetadata) -> None:
        self._purgatory.try_complete_else_watch(barrier, [GroupJoinKey(group.group_id)])

    # -- the sync barrier ------------------------------------------------------------------------------------

    def sync_received(self, group: GroupMetadata, member_id: str) -> None:
        group.sync_received_from(member_id)
        self._check_sync_barrier(group)

    def expire_pending_sync(self, group: GroupMetadata) -> None:
        """Some members never asked for their share of the generation."""
        missing = group.pending_sync_members
        for member_id in missing:
            group.remove(member_id)
            self.sessions.end(group, member_id)
        self.prepare(group, f"Removing {sorted(missing)} on pending sync request expiration")

    def _drop_sync_barrier(self, group: GroupMetadata) -> None:
        group.expect_no_syncs()
        self._check_sync_barrier(group)

    def _check_sync_barrier(self, group: GroupMetadata) -> None:
        self._purgatory.check_and_complete(GroupSyncKey(group.group_id))

    # -- the assignment --------------------------------------------------------------------------------------

    def store_assignment(self, group: GroupMetadata, leader_id: str, assignment: dict[str, bytes]) -> None:
        """The leader has spoken: once its assignment is in the log, give everybody their share."""
        missing = [member_id for member_id in group.member_ids if member_id not in assignment]
        if missing:
            _log.warning("Setting empty assignments for members %s of group %s", missing, group.group_id)
        complete = {member_id: assignment.get(member_id, b"") for member_id in group.member_ids}
        generation_id = group.generation_id

        def stored(error: ErrorCode) -> None:
            # Others may have joined or left while the record was on its way; then this assignment is for nobody.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error == ErrorCode.NONE:
                self._assign(group, complete)
            else:
                answers = self._abandon_assignment(group, error)
                self.maybe_prepare(group, f"Error {error.name} when storing group assignment (member: {leader_id})")
                _give(answers)

        self._store_group(group, complete, stored)

    def _assign(self, group: GroupMetadata, assignment: dict[str, bytes]) -> None:
        for member in group.members:
            member.assignment = assignment[member.member_id]
        group.lifecycle.fire(GroupEvent.ASSIGNMENT_STORED)
        _give(self._take_syncs(group, ErrorCode.NONE))

    def _abandon_assignment(self, group: GroupMetadata, error: ErrorCode) -> SyncAnswers:
        """There will be no assignment in this generation: parked syncs fail."""
        for member in group.members:
            member.assignment = b""
        return self._take_syncs(group, error)

    def _take_syncs(self, group: GroupMetadata, error: ErrorCode) -> SyncAnswers:
        succeeded = error == ErrorCode.NONE
        answers: SyncAnswers = []
        for member in group.members:
            respond = member.take_sync()
            if respond is None:
                continue
            response = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if succeeded else None,
                protocol_name=group.protocol_name if succeeded else None,
                assignment=member.assignment,
            )
            answers.append((respond, response))
            # A session that ran out while the sync was parked has been forgiven, so the member has none now.
            self.sessions.renew(group, member)
        return answers

    # -- the end ---------------------------------------------------------------------------------------------

    def release(self, group: GroupMetadata) -> None:
        """The group is dead: nothing of it may stay behind in timers and watch lists."""
        for member_id in [*group.member_ids, *group.pending_members]:
            self.sessions.end(group, member_id)
        self._purgatory.check_and_complete(GroupJoinKey(group.group_id))
        self._drop_sync_barrier(group)


def _give(answers: SyncAnswers) -> None:
    for respond, response in answers:
        respond(response)


def _warn_if_not_stored(group: GroupMetadata, error: ErrorCode) -> None:
    # If this broker fails now, the previous generation becomes active again and times out: safe, nobody is in it.
    if error != ErrorCode.NONE:
        _log.warning("Failed to write empty metadata for group %s: %s", group.group_id, error.name)
