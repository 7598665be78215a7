"""Rebalancing: moves a group from one generation to the next.

All transitions between Empty, PreparingRebalance, CompletingRebalance and Stable are made in this file (the transition
to Dead is in group_metadata_manager.py). Two barriers park requests. Each is a delayed operation that completes when
the last member has sent its request, and expires after the rebalance timeout:

    DelayedJoin   watched under GroupJoinKey while PreparingRebalance. When it completes or expires, members that did
                  not rejoin are removed (static ones stay until their sessions expire), a leader that did not rejoin
                  is replaced, the generation begins and every parked join is answered. If no member rejoined, a new
                  DelayedJoin starts, until the sessions expire.
    InitialDelayedJoin   the same for a group that was Empty. It does not complete early, so that clients that start at
                  the same time join one generation. Each `group.initial.rebalance.delay.ms` in which a member joined
                  extends it by the same time, up to the rebalance timeout.
    DelayedSync   watched under GroupSyncKey from the start of a generation. Members that have not synced when it
                  expires are removed, and the others rebalance.

Sending a response may handle the next request of the same connection before `respond` returns. So a parked request is
taken out first, then the group is updated, and the responses are sent last.

Every parked request is answered, also one that a repeated request replaces, and the sync of a member that is removed.
(Kafka drops these callbacks, and the client waits for its request timeout.)

Kafka: GroupCoordinator, DelayedJoin, InitialDelayedJoin, DelayedSync.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.members.sessions import MemberSessions
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

if TYPE_CHECKING:
    from odradek.coordinator.group.observer import GroupObserver

_log = logging.getLogger(__name__)

MIN_IDLE_REBALANCE_MS = 100
"""The least delay of a DelayedJoin that starts again because no member rejoined. Clients choose the rebalance timeout;
with a timeout of 0 the broker would restart it in an endless loop."""

StoreGroup = Callable[[GroupMetadata, dict[str, bytes], Callable[[ErrorCode], None]], None]
"""Writes the group with an assignment to the log; the callback gets the error for the clients."""

SyncResponses = list[tuple[Respond[SyncGroupResponse], SyncGroupResponse]]


@dataclass(frozen=True, slots=True)
class GroupJoinKey:
    """Watch key of the join barrier."""

    group_id: str


@dataclass(frozen=True, slots=True)
class GroupSyncKey:
    """Watch key of the sync barrier."""

    group_id: str


class DelayedJoin(DelayedOperation):
    """Waits for all members to join; when it expires, the missing ones are removed."""

    __slots__ = ("_group", "_rebalancer")

    def __init__(self, rebalancer: Rebalancer, group: GroupMetadata, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self._rebalancer = rebalancer
        self._group = group

    def try_complete(self) -> bool:
        return (self._group.is_dead or self._group.has_all_members_joined) and self.force_complete()

    def on_complete(self) -> None:
        self._rebalancer.on_complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """Waits for the whole initial delay even if all members have joined, and again while more members join."""

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
        """Does nothing: the syncs are answered when the assignment is stored."""

    def on_expiration(self) -> None:
        if self._is_waited_for:
            self._rebalancer.expire_pending_sync(self._group)


class Rebalancer:
    """Moves groups from generation to generation."""

    __slots__ = ("_config", "_store_group", "completed_rebalances", "observer", "purgatory", "sessions")

    def __init__(self, config: GroupConfig, timer: SystemTimer, store_group: StoreGroup) -> None:
        self._config = config
        self._store_group = store_group
        self.purgatory = DelayedOperationPurgatory[DelayedOperation]("Rebalance", timer)
        self.completed_rebalances = 0
        self.observer: GroupObserver | None = None
        self.sessions = MemberSessions(
            timer,
            on_expired=lambda group, member: self.remove_member(
                group, member, f"removing member {member.member_id} on heartbeat expiration"
            ),
            on_pending_expired=self.remove_pending_member,
        )

    @property
    def open_barrier_count(self) -> int:
        """Join and sync barriers that have neither completed nor expired."""
        return self.purgatory.num_delayed

    # -- adding members --------------------------------------------------------------------------------------

    def add_member(
        self, group: GroupMetadata, member: MemberMetadata, respond: Respond[JoinGroupResponse], reason: str
    ) -> None:
        """Add a new member, start its session and rebalance. Kafka: GroupCoordinator.addMemberAndRebalance."""
        member.is_new = True
        if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
            group.new_member_added = True
        group.add(member, respond)
        self.sessions.start_joining(group, member)
        self.maybe_prepare_rebalance(group, reason)

    def maybe_prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        if group.lifecycle.can_rebalance:
            self.prepare_rebalance(group, reason)

    def prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        """Begin a rebalance: parked syncs get REBALANCE_IN_PROGRESS, and the join barrier starts."""
        responses: SyncResponses = []
        if group.state is GroupState.COMPLETING_REBALANCE:
            responses = self._abandon_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._drop_sync_barrier(group)
        delay_ms = self._config.group_initial_rebalance_delay_ms
        barrier: DelayedJoin
        if group.state is GroupState.EMPTY:
            barrier = InitialDelayedJoin(self, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        else:
            barrier = DelayedJoin(self, group, group.rebalance_timeout_ms)
        state = group.state
        group.lifecycle.fire(GroupEvent.REBALANCE)
        _log.info(
            "Preparing to rebalance group %s in state %s with old generation %d (reason: %s)",
            group.group_id,
            state.value,
            group.generation_id,
            reason,
        )
        if self.observer is not None:
            self.observer.rebalance_begins(group, reason)
        self._watch_join(barrier, group)
        _send_responses(responses)

    def check_join_barrier(self, group: GroupMetadata) -> None:
        """Complete the join barrier if all members have joined, after a member joined or left."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self.purgatory.check_and_complete(GroupJoinKey(group.group_id))

    # -- removing members ------------------------------------------------------------------------------------

    def remove_member(self, group: GroupMetadata, member: MemberMetadata, reason: str) -> None:
        """A member left or failed. Its parked request gets UNKNOWN_MEMBER_ID, so that a live client joins again.

        Kafka: GroupCoordinator.removeMemberAndUpdateGroup.
        """
        parked_join, parked_sync = group.take_join(member), member.take_sync()
        group.remove(member.member_id)
        self.sessions.end(group, member.member_id)
        match group.state:
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                self.maybe_prepare_rebalance(group, reason)
            case GroupState.PREPARING_REBALANCE:
                self.check_join_barrier(group)
            case GroupState.EMPTY | GroupState.DEAD:
                pass
        if parked_join is not None:
            parked_join(join_error(UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID))
        if parked_sync is not None:
            parked_sync(sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    def remove_pending_member(self, group: GroupMetadata, member_id: str) -> None:
        """The pending member left, or did not join within its timeout.

        Kafka: GroupCoordinator.removePendingMemberAndUpdateGroup.
        """
        group.remove(member_id)
        self.sessions.end(group, member_id)
        self.check_join_barrier(group)

    # -- the join barrier ------------------------------------------------------------------------------------

    def extend_initial_delay(self, group: GroupMetadata, waited_ms: int, remaining_ms: int) -> None:
        """Members joined during the initial delay: wait again, within the rebalance timeout."""
        delay_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
        self._watch_join(InitialDelayedJoin(self, group, delay_ms, max(remaining_ms - waited_ms, 0)), group)

    def on_complete_join(self, group: GroupMetadata) -> None:
        """All members have joined, or the timeout is over: begin the next generation with those that joined."""
        for member in list(group.not_yet_rejoined()):
            if not member.is_static:
                _log.info("Group %s removed %r because it did not rejoin", group.group_id, member)
                group.remove(member.member_id)
                self.sessions.end(group, member.member_id)
        if group.is_dead:
            return
        if len(group) and not group.maybe_elect_new_joined_leader():
            _log.error("Group %s could not complete rebalance because no members rejoined", group.group_id)
            delay_ms = max(group.rebalance_timeout_ms, MIN_IDLE_REBALANCE_MS)
            self._watch_join(DelayedJoin(self, group, delay_ms), group)
            return
        group.init_next_generation()
        if self.observer is not None:
            self.observer.changed(group)
        if group.state is GroupState.EMPTY:
            _log.info("Group %s with generation %d is now empty", group.group_id, group.generation_id)
            self._store_group(group, {}, lambda error: _warn_if_not_stored(group, error))
        else:
            self._answer_joins(group)

    def _answer_joins(self, group: GroupMetadata) -> None:
        _log.info("Stabilized group %s generation %d with %d members", group.group_id, group.generation_id, len(group))
        responses = []
        for member in group.members:
            respond = group.take_join(member)
            if respond is not None:
                is_leader = group.is_leader(member.member_id)
                responses.append((respond, group.join_success(member.member_id, with_members=is_leader)))
            self.sessions.renew(group, member)
            member.is_new = False
            group.add_pending_sync_member(member.member_id)
        barrier = DelayedSync(self, group, group.rebalance_timeout_ms)
        self.purgatory.try_complete_else_watch(barrier, [GroupSyncKey(group.group_id)])
        for respond, response in responses:
            respond(response)

    def _watch_join(self, barrier: DelayedJoin, group: GroupMetadata) -> None:
        self.purgatory.try_complete_else_watch(barrier, [GroupJoinKey(group.group_id)])

    # -- the sync barrier ------------------------------------------------------------------------------------

    def sync_received(self, group: GroupMetadata, member_id: str) -> None:
        """Kafka: GroupCoordinator.removePendingSyncMember."""
        group.remove_pending_sync_member(member_id)
        self._check_sync_barrier(group)

    def expire_pending_sync(self, group: GroupMetadata) -> None:
        """Remove the members that did not sync in time, and rebalance. Kafka: GroupCoordinator.onExpirePendingSync."""
        missing = group.pending_sync_members
        for member_id in missing:
            group.remove(member_id)
            self.sessions.end(group, member_id)
        self.prepare_rebalance(group, f"Removing {sorted(missing)} on pending sync request expiration")

    def _drop_sync_barrier(self, group: GroupMetadata) -> None:
        group.clear_pending_sync_members()
        self._check_sync_barrier(group)

    def _check_sync_barrier(self, group: GroupMetadata) -> None:
        self.purgatory.check_and_complete(GroupSyncKey(group.group_id))

    # -- the assignment --------------------------------------------------------------------------------------

    def store_assignment(self, group: GroupMetadata, leader_id: str, assignment: dict[str, bytes]) -> None:
        """Append the leader's assignment to the log, then answer every parked sync with the member's assignment."""
        missing = [member_id for member_id in group.member_ids if member_id not in assignment]
        if missing:
            _log.warning("Setting empty assignments for members %s of group %s", missing, group.group_id)
        _log.info(
            "Assignment received from leader %s for group %s for generation %d. The group has %d members, %d of which "
            "are static.",
            leader_id,
            group.group_id,
            group.generation_id,
            len(group),
            sum(member.is_static for member in group.members),
        )
        complete = {member_id: assignment.get(member_id, b"") for member_id in group.member_ids}
        generation_id = group.generation_id

        def stored(error: ErrorCode) -> None:
            # If a member joined or left before the record was committed, a rebalance has begun: the assignment is void.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error == ErrorCode.NONE:
                self._assign(group, complete)
            else:
                responses = self._abandon_assignment(group, error)
                self.maybe_prepare_rebalance(
                    group, f"Error {error.name} when storing group assignment (member: {leader_id})"
                )
                _send_responses(responses)

        self._store_group(group, complete, stored)
        self.completed_rebalances += 1

    def _assign(self, group: GroupMetadata, assignment: dict[str, bytes]) -> None:
        """Kafka: GroupCoordinator.setAndPropagateAssignment."""
        for member in group.members:
            member.assignment = assignment[member.member_id]
        group.lifecycle.fire(GroupEvent.ASSIGNMENT_STORED)
        _send_responses(self._take_syncs(group, ErrorCode.NONE))

    def _abandon_assignment(self, group: GroupMetadata, error: ErrorCode) -> SyncResponses:
        """This generation gets no assignment: clear it and return the error responses of the parked syncs.

        Kafka: GroupCoordinator.resetAndPropagateAssignmentError.
        """
        for member in group.members:
            member.assignment = b""
        return self._take_syncs(group, error)

    def _take_syncs(self, group: GroupMetadata, error: ErrorCode) -> SyncResponses:
        """Unpark all syncs and renew their members' sessions. Kafka: GroupCoordinator.propagateAssignment."""
        succeeded = error == ErrorCode.NONE
        responses: SyncResponses = []
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
            responses.append((respond, response))
            # A session that expired while the sync was parked did not remove the member, so it has no session now.
            self.sessions.renew(group, member)
        return responses

    # -- the end ---------------------------------------------------------------------------------------------

    def release(self, group: GroupMetadata) -> None:
        """The group is dead: remove its sessions and barriers from the timer and the watch lists."""
        for member_id in [*group.member_ids, *group.pending_members]:
            self.sessions.end(group, member_id)
        self.purgatory.check_and_complete(GroupJoinKey(group.group_id))
        self._drop_sync_barrier(group)


def _send_responses(responses: SyncResponses) -> None:
    for respond, response in responses:
        respond(response)


def _warn_if_not_stored(group: GroupMetadata, error: ErrorCode) -> None:
    # If this broker fails now, the next coordinator loads the previous generation, and its members time out.
    if error != ErrorCode.NONE:
        _log.warning("Failed to write empty metadata for group %s: %s", group.group_id, error.name)
