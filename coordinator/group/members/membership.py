"""SyncGroup, Heartbeat and LeaveGroup: the requests of members that have joined.

Versions: SyncGroup 0-5 (3 adds `group.instance.id`, 5 the protocol type and name, which must be set and match),
Heartbeat 0-4 (3 adds the instance id), LeaveGroup 0-5 (since 3 several members at once, also by instance id alone;
up to 2 one member, whose error is the response's error).

Kafka: GroupCoordinator.handleSyncGroup, GroupCoordinator.handleHeartbeat, GroupCoordinator.handleLeaveGroup.
"""

from __future__ import annotations

import logging

from odradek.coordinator.group.members.rebalance import Rebalancer
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupRequest, GroupState
from odradek.coordinator.group.state.responses import UNKNOWN_MEMBER_ID, sync_error
from odradek.coordinator.group.validation import validate_generation, validate_member
from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_log = logging.getLogger(__name__)


class Membership:
    """The three requests, for a group that exists."""

    __slots__ = ("_rebalancer",)

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer

    def sync(self, group: GroupMetadata, request: SyncGroupRequest, respond: Respond[SyncGroupResponse]) -> None:
        """Park the sync until the leader's assignment is stored, or answer with the stored assignment.

        Kafka: GroupCoordinator.doSyncGroup.
        """
        member_id = request.member_id
        error = self._validate_sync(group, request)
        if error == ErrorCode.NONE:
            error = group.lifecycle.answer(GroupRequest.SYNC)
        if error != ErrorCode.NONE:
            respond(sync_error(error))
            return
        member = group[member_id]
        if group.state is GroupState.STABLE:
            self._rebalancer.sync_received(group, member_id)
            self._rebalancer.sessions.renew(group, member)
            respond(
                SyncGroupResponse(
                    error_code=ErrorCode.NONE,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    assignment=member.assignment,
                )
            )
            return
        superseded, member.awaiting_sync = member.awaiting_sync, respond
        self._rebalancer.sync_received(group, member_id)
        if group.is_leader(member_id):
            assignment = {share.member_id: share.assignment for share in request.assignments}
            self._rebalancer.store_assignment(group, member_id, assignment)
        if superseded is not None:
            superseded(sync_error(ErrorCode.REBALANCE_IN_PROGRESS))

    @staticmethod
    def _validate_sync(group: GroupMetadata, request: SyncGroupRequest) -> ErrorCode:
        error = validate_generation(
            group, request.generation_id, request.member_id, request.group_instance_id, "sync-group"
        )
        if error != ErrorCode.NONE:
            return error
        if request.protocol_type not in (None, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def heartbeat(self, group: GroupMetadata, request: HeartbeatRequest) -> ErrorCode:
        """Renew the member's session, also during a rebalance. The error tells the member whether it must rejoin."""
        error = validate_generation(
            group, request.generation_id, request.member_id, request.group_instance_id, "heartbeat"
        )
        if error != ErrorCode.NONE:
            return error
        if group.state is not GroupState.EMPTY:
            self._rebalancer.sessions.renew(group, group[request.member_id])
        return group.lifecycle.answer(GroupRequest.HEARTBEAT)

    def leave(self, group: GroupMetadata, identity: MemberIdentity) -> ErrorCode:
        """Remove one member: by its id, or a static one by its instance id alone, as admin tools do (KIP-345).

        Kafka: GroupCoordinator.removeCurrentMemberFromGroup.
        """
        member_id = identity.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            instance_id = identity.group_instance_id
            static_member_id = None if instance_id is None else group.static_member_id(instance_id)
            if static_member_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            self._remove(group, static_member_id, identity)
            return ErrorCode.NONE
        if group.is_pending(member_id):
            self._rebalancer.remove_pending_member(group, member_id)
            return ErrorCode.NONE
        error = validate_member(group, member_id, identity.group_instance_id, "leave-group")
        if error == ErrorCode.NONE:
            self._remove(group, member_id, identity)
        return error

    def _remove(self, group: GroupMetadata, member_id: str, identity: MemberIdentity) -> None:
        reason = identity.reason or "not provided"
        _log.info("Member %s leaves group %s; client reason: %s", member_id, group.group_id, reason)
        self._rebalancer.remove_member(
            group, group[member_id], f"removing member {member_id} on LeaveGroup; client reason: {reason}"
        )
