from __future__ import annotations

import pytest

from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupEvent
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.group.validation import validate_generation, validate_member, validate_offset_commit
from odradek.protocol.errors import ErrorCode
from odradek.timer.clock import ManualClock


def group_of(*members: tuple[str, str | None]) -> GroupMetadata:
    group = GroupMetadata("g", ManualClock())
    for member_id, instance_id in members:
        group.add(
            MemberMetadata(
                member_id=member_id,
                group_instance_id=instance_id,
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=1,
                session_timeout_ms=1,
                protocol_type="consumer",
                protocols=(("range", b""),),
            )
        )
    if members:
        group.lifecycle.fire(GroupEvent.REBALANCE)
        group.init_next_generation()
    return group


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("d", None, ErrorCode.NONE),
        ("s-2", None, ErrorCode.NONE),
        ("s-2", "s", ErrorCode.NONE),
        ("s-1", "s", ErrorCode.FENCED_INSTANCE_ID),
        ("d", "s", ErrorCode.FENCED_INSTANCE_ID),
        ("d", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("s-1", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_members(member_id: str, instance_id: str | None, error: ErrorCode) -> None:
    group = group_of(("d", None), ("s-2", "s"))
    assert validate_member(group, member_id, instance_id, "test") == error
    assert validate_generation(group, 1, member_id, instance_id, "test") == error
    if error == ErrorCode.NONE:
        assert validate_generation(group, 0, member_id, instance_id, "test") == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("generation", "member_id", "instance_id", "plain", "transactional"),
    [
        (1, "d", None, ErrorCode.NONE, ErrorCode.NONE),
        (0, "d", None, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (-1, "d", None, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (1, "x", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (1, "", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", "i", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE),
    ],
)
def test_commits_to_a_group_with_members(
    generation: int, member_id: str, instance_id: str | None, plain: ErrorCode, transactional: ErrorCode
) -> None:
    group = group_of(("d", None))
    assert validate_offset_commit(group, generation, member_id, instance_id, transactional=False) == plain
    assert validate_offset_commit(group, generation, member_id, instance_id, transactional=True) == transactional


@pytest.mark.parametrize("transactional", [False, True])
def test_commits_to_a_group_without_members(transactional: bool) -> None:
    group = group_of()
    assert validate_offset_commit(group, -1, "", None, transactional=transactional) == ErrorCode.NONE
    assert validate_offset_commit(group, -1, "whoever", None, transactional=transactional) == ErrorCode.NONE
    assert validate_offset_commit(group, 0, "", None, transactional=transactional) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_dead_group_sends_everybody_to_look_for_the_coordinator() -> None:
    group = group_of(("d", None))
    group.lifecycle.fire(GroupEvent.REMOVED)
    assert validate_generation(group, 1, "d", None, "test") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert validate_offset_commit(group, 1, "d", None, transactional=False) == ErrorCode.COORDINATOR_NOT_AVAILABLE
