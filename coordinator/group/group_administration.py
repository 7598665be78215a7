"""The groups in DescribeGroups and ListGroups responses.

DescribeGroups 0-5: a group that does not exist is described as Dead, without an error. Metadata and assignments are
included only while the group is Stable, because only then do they match. ListGroups 0-5: filters by state (4) and
type (5), neither case-sensitive; all groups here are of type `classic`.

Kafka: GroupMetadata.summary, GroupMetadata.overview, GroupCoordinator.handleListGroups.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

GROUP_TYPE = "classic"


def not_described(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, members=[])


def describe_group(group_id: str, group: GroupMetadata | None) -> DescribedGroup:
    if group is None:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value, members=[])
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=KeptArray(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=b"" if protocol is None else member.assignment,
            )
            for member in group.members
        ),
    )


def list_group(group: GroupMetadata) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=GROUP_TYPE,
    )


def group_filter(request: ListGroupsRequest) -> Callable[[GroupMetadata], bool]:
    """Whether a group is to be listed. An empty filter matches all groups; an unknown state or type matches none."""
    states = {state.lower() for state in request.states_filter or ()}
    types = {kind.lower() for kind in request.types_filter or ()}
    wanted = {state for state in GroupState if not states or state.value.lower() in states}
    if types and GROUP_TYPE not in types:
        wanted.clear()
    return lambda group: group.state in wanted
