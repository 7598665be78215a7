"""Checks before a request is handled: does this broker coordinate the group, and is the sender a current member?

Kafka: GroupCoordinator.validateGroupStatus, GroupCoordinator.validateCurrentMember,
GroupCoordinator.validateOffsetCommit.
"""

from __future__ import annotations

import logging

from odradek.coordinator.group.group_metadata_manager import GroupMetadataManager
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.errors import ErrorCode

_log = logging.getLogger(__name__)


def refusal_for(groups: GroupMetadataManager, group_id: str, *, empty_id_allowed: bool = False) -> ErrorCode:
    """The error if this broker cannot serve the group, else NONE. Kafka: GroupCoordinator.validateGroupStatus.

    The empty group id is allowed in the requests about offsets, because old consumers used it, and in DescribeGroups
    and DeleteGroups. No client can join it.
    """
    if not group_id and not empty_id_allowed:
        return ErrorCode.INVALID_GROUP_ID
    if not groups.is_active:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if groups.ownership.is_anything_loading and groups.is_loading(group_id):
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if not groups.is_local(group_id):
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.NONE


def validate_member(group: GroupMetadata, member_id: str, group_instance_id: str | None, operation: str) -> ErrorCode:
    """The member must be in the group; with an instance id it must be that instance's current member (KIP-345).

    Kafka: GroupCoordinator.validateCurrentMember.
    """
    if group_instance_id is not None:
        current = group.static_member_id(group_instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            _log.info(
                "Static member %s with member id %s is fenced by %s in %s",
                group_instance_id,
                member_id,
                current,
                operation,
            )
            return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE
    return ErrorCode.NONE if member_id in group else ErrorCode.UNKNOWN_MEMBER_ID


def validate_generation(
    group: GroupMetadata, generation_id: int, member_id: str, group_instance_id: str | None, operation: str
) -> ErrorCode:
    """The member must be valid and in the current generation."""
    if group.is_dead:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = validate_member(group, member_id, group_instance_id, operation)
    if error == ErrorCode.NONE and generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def validate_offset_commit(
    group: GroupMetadata, generation_id: int, member_id: str, group_instance_id: str | None, *, transactional: bool
) -> ErrorCode:
    """A member may commit offsets; while the group is Empty any client may.

    Generation -1 comes from admin tools and from consumers that assign their partitions themselves. Old transactional
    producers send neither member nor generation, and are allowed.
    """
    if group.is_dead:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation_id >= 0 or member_id or group_instance_id is not None:
        operation = "txn-offset-commit" if transactional else "offset-commit"
        return validate_generation(group, generation_id, member_id, group_instance_id, operation)
    return ErrorCode.NONE if transactional else ErrorCode.UNKNOWN_MEMBER_ID
