"""JoinGroup: checks of the joining client, and the effect on the group.

Versions 0-9: version 0 has no rebalance timeout (the session timeout is used); since 4 a new dynamic member must join
again with the id it is given (KIP-394); 5 adds `group.instance.id` (KIP-345); since 9 a static leader can rejoin
without a new assignment (KIP-814).

    joining client                     state of the group    effect
    ---------------------------------  --------------------  ----------------------------------------------------
    no id, dynamic, v4+                any                   is pending, gets an id and MEMBER_ID_REQUIRED
    no id, dynamic, older; pending     any                   becomes a member, the group rebalances
    no id, static, instance new        any                   becomes a member, the group rebalances
    no id, static, instance known      Stable                replaces the old id. If the group's protocol stays, the
                                                             group is stored in the same generation, else it rebalances
                                       CompletingRebalance   replaces the old id, the group rebalances
                                       PreparingRebalance    replaces the old id, its join is parked
    known id                           PreparingRebalance    its join is parked
                                       CompletingRebalance   same metadata: the response is repeated (it may have been
                                                             lost); other metadata: the group rebalances
                                       Stable                follower with same metadata: the response is repeated;
                                                             leader, or other metadata: the group rebalances
    unknown id, fenced id              any                   UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID

Kafka: GroupCoordinator.handleJoinGroup.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.members.rebalance import Rebalancer, StoreGroup
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.coordinator.group.state.member import MemberMetadata, Protocols
from odradek.coordinator.group.state.responses import UNKNOWN_MEMBER_ID, join_error
from odradek.coordinator.group.validation import validate_member
from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_log = logging.getLogger(__name__)

KNOWN_MEMBER_ID_VERSION = 4
SKIP_ASSIGNMENT_VERSION = 9


def protocols_of(request: JoinGroupRequest) -> Protocols:
    return tuple([(protocol.name, protocol.metadata) for protocol in request.protocols])


class Join(NamedTuple):
    """One JoinGroup request and its client."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str
    version: int
    respond: Respond[JoinGroupResponse]

    @staticmethod
    def of(
        context: GroupRequestContext,
        request: JoinGroupRequest,
        respond: Respond[JoinGroupResponse],
        protocols: Protocols | None = None,
    ) -> Join:
        version = context.api_version
        return Join(
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id or "",
            client_host=f"/{context.client_host}",  # as InetAddress.toString in Java; DescribeGroups returns it
            rebalance_timeout_ms=request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=protocols_of(request) if protocols is None else protocols,
            reason=request.reason or "not provided",
            version=version,
            respond=respond,
        )

    @property
    def protocol_names(self) -> list[str]:
        return [name for name, _ in self.protocols]

    def fail(self, error: ErrorCode, member_id: str | None = None) -> None:
        self.respond(join_error(self.member_id if member_id is None else member_id, error))

    def new_member(self, member_id: str) -> MemberMetadata:
        return MemberMetadata(
            member_id=member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
        )


class GroupJoiner:
    """Implements the table above. `new_uuid` generates the random part of member ids."""

    __slots__ = ("_config", "_new_uuid", "_rebalancer", "_store_group")

    def __init__(
        self, config: GroupConfig, rebalancer: Rebalancer, store_group: StoreGroup, new_uuid: Callable[[], str]
    ) -> None:
        self._config = config
        self._rebalancer = rebalancer
        self._store_group = store_group
        self._new_uuid = new_uuid

    def join(self, group: GroupMetadata, join: Join) -> None:
        if not self._has_room_for(group, join.member_id):
            self._turn_away(group, join)
        elif group.is_dead:
            # The group was just removed or moved to another coordinator; the client looks for the coordinator again.
            join.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not group.supports_protocols(join.protocol_type, join.protocol_names):
            join.fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif join.member_id == UNKNOWN_MEMBER_ID:
            self._join_as_new_member(group, join)
        else:
            self._join_as_known_member(group, join)
        self._rebalancer.check_join_barrier(group)

    def _has_room_for(self, group: GroupMetadata, member_id: str) -> bool:
        """Whether `group.max.size` allows the join. Kafka: GroupCoordinator.acceptJoiningMember.

        In PreparingRebalance only members that have joined count: after the limit was lowered, the last ones to rejoin
        are refused.
        """
        limit = self._config.group_max_size
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                member = group.get(member_id)
                return (member is not None and member.is_awaiting_join) or group.awaiting_join_count < limit
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return member_id in group or len(group) < limit

    def _turn_away(self, group: GroupMetadata, join: Join) -> None:
        group.remove(join.member_id)
        self._rebalancer.sessions.end(group, join.member_id)
        join.fail(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID)

    # -- without an id ---------------------------------------------------------------------------------------

    def _join_as_new_member(self, group: GroupMetadata, join: Join) -> None:
        """Kafka: GroupCoordinator.doNewMemberJoinGroup, doStaticNewMemberJoinGroup, doDynamicNewMemberJoinGroup."""
        instance_id = join.group_instance_id
        if instance_id is None:
            member_id = f"{join.client_id}-{self._new_uuid()}"
            _log.info(
                "Dynamic member with unknown member id joins group %s in %s state. Created a new member id %s %s.",
                group.group_id,
                group.state.value,
                member_id,
                "and request the member to rejoin with this id"
                if join.version >= KNOWN_MEMBER_ID_VERSION
                else "for this member and add to the group",
            )
            if join.version >= KNOWN_MEMBER_ID_VERSION:
                self._require_member_id(group, join, member_id)
            else:
                self._add(group, join, member_id)
            return
        member_id = f"{instance_id}-{self._new_uuid()}"
        old_member_id = group.static_member_id(instance_id)
        if old_member_id is None:
            self._add(group, join, member_id)
        else:
            _log.info(
                "Static member %s of group %s in state %s rejoins and replaces member id %s",
                instance_id,
                group.group_id,
                group.state.value,
                old_member_id,
            )
            self._replace_static_member(group, join, instance_id, old_member_id, member_id)

    def _require_member_id(self, group: GroupMetadata, join: Join, member_id: str) -> None:
        group.add_pending_member(member_id)
        self._rebalancer.sessions.start_pending(group, member_id, join.session_timeout_ms)
        join.fail(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _add(self, group: GroupMetadata, join: Join, member_id: str) -> None:
        reason = (
            f"adding new member {member_id} with group instance id {join.group_instance_id}; "
            f"client reason: {join.reason}"
        )
        self._rebalancer.add_member(group, join.new_member(member_id), join.respond, reason)

    # -- a static member rejoins without an id ---------------------------------------------------------------

    def _replace_static_member(
        self, group: GroupMetadata, join: Join, instance_id: str, old_member_id: str, new_member_id: str
    ) -> None:
        """Kafka: GroupCoordinator.updateStaticMemberAndRebalance."""
        old_leader_id = group.leader_id
        member, fence_old = group.replace_static_member(instance_id, old_member_id, new_member_id)
        before = _Rejoin(member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._rebalancer.sessions.end(group, old_member_id)
        self._rebalancer.sessions.renew(group, member)
        self._update(group, member, join)
        match group.state:
            case GroupState.STABLE if group.select_protocol() == group.protocol_name:
                self._store_replacement(group, member, join, old_member_id, old_leader_id, before)
            case GroupState.STABLE:
                self._rebalancer.prepare_rebalance(
                    group, f"the protocol changes with static member {instance_id}; client reason: {join.reason}"
                )
            case GroupState.COMPLETING_REBALANCE:
                # The leader may be computing an assignment for the old id; it would have nothing for the new one.
                self._rebalancer.prepare_rebalance(
                    group, f"updating metadata for static member {instance_id}; client reason: {join.reason}"
                )
            case GroupState.PREPARING_REBALANCE:
                pass
            case GroupState.EMPTY | GroupState.DEAD:
                raise RuntimeError(f"static member {instance_id} is in group {group!r}")
        for answer in fence_old:
            answer()

    def _store_replacement(
        self,
        group: GroupMetadata,
        member: MemberMetadata,
        join: Join,
        old_member_id: str,
        old_leader_id: str | None,
        before: _Rejoin,
    ) -> None:
        """Store the group with the new member id in the same generation: answer when committed, undo on an error."""
        new_member_id = member.member_id
        assignment = {other.member_id: other.assignment for other in group.members}

        def stored(error: ErrorCode) -> None:
            if member.awaiting_join is not join.respond or group.state is GroupState.PREPARING_REBALANCE:
                # The join was answered meanwhile (member removed or replaced, group unloaded), or a rebalance has
                # begun, which will answer it.
                return
            if error != ErrorCode.NONE:
                self._undo_replacement(group, member, old_member_id, before)
                failure = group.join_success(UNKNOWN_MEMBER_ID, leader_id=old_leader_id)
                failure.error_code = error
                join.respond(failure)
                return
            is_leader = group.is_leader(new_member_id)
            if join.version >= SKIP_ASSIGNMENT_VERSION:
                # The leader is named, so that it watches for metadata changes. It must not compute an assignment: a
                # Stable group would ignore it.
                response = group.join_success(new_member_id, with_members=is_leader, skip_assignment=is_leader)
            else:
                # Up to version 8 the response names the old id as leader, so that the leader computes no assignment.
                response = group.join_success(new_member_id, leader_id=old_leader_id)
            group.answer_join(member, response)

        self._store_group(group, assignment, stored)

    def _undo_replacement(
        self, group: GroupMetadata, member: MemberMetadata, old_member_id: str, before: _Rejoin
    ) -> None:
        """Restore the member as it is in the log. (Kafka restores id and timeouts, but keeps the new protocols.)"""
        group.update_member(
            member,
            protocols=before.protocols,
            rebalance_timeout_ms=before.rebalance_timeout_ms,
            session_timeout_ms=before.session_timeout_ms,
            respond=None,
        )
        assert member.group_instance_id is not None
        new_member_id = member.member_id
        _, fence_new = group.replace_static_member(member.group_instance_id, new_member_id, old_member_id)
        self._rebalancer.sessions.end(group, new_member_id)
        self._rebalancer.sessions.renew(group, member)
        for answer in fence_new:
            answer()

    # -- with an id ------------------------------------------------------------------------------------------

    def _join_as_known_member(self, group: GroupMetadata, join: Join) -> None:
        """Kafka: GroupCoordinator.doCurrentMemberJoinGroup."""
        if group.is_pending(join.member_id):
            if join.group_instance_id is not None:
                # A static member is never given an id before it joins: only a faulty client does this.
                join.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                self._add(group, join, join.member_id)
            return
        error = validate_member(group, join.member_id, join.group_instance_id, "join-group")
        if error != ErrorCode.NONE:
            join.fail(error)
            return
        member = group[join.member_id]
        is_leader = group.is_leader(member.member_id)
        changed = member.protocols != join.protocols
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                self._update(group, member, join)
            case GroupState.COMPLETING_REBALANCE if not changed:
                join.respond(group.join_success(member.member_id, with_members=is_leader))
            case GroupState.STABLE if not changed and not is_leader:
                join.respond(group.join_success(member.member_id))
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                # A leader rejoins to make a new assignment: its topics may have changed though no member's metadata
                # has.
                self._update(group, member, join)
                self._rebalancer.prepare_rebalance(
                    group,
                    f"{'leader' if is_leader else 'member'} {member.member_id} rejoining; client reason: {join.reason}",
                )
            case GroupState.EMPTY | GroupState.DEAD:
                _log.warning(
                    "Refusing the rejoin of member %s: group %r has no members in this state", join.member_id, group
                )
                join.fail(ErrorCode.UNKNOWN_MEMBER_ID)

    def _update(self, group: GroupMetadata, member: MemberMetadata, join: Join) -> None:
        """Apply the join's metadata and park it. A join parked before came over a connection the client has closed."""
        superseded = group.take_join(member)
        group.update_member(
            member,
            protocols=join.protocols,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.session_timeout_ms,
            respond=join.respond,
        )
        if superseded is not None:
            superseded(join_error(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))


class _Rejoin(NamedTuple):
    """The fields that a rejoin changes, with their values from before."""

    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int
