from __future__ import annotations

import pytest

from odradek.coordinator.group.group_administration import describe_group, group_filter, not_described
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.timer.clock import ManualClock


@pytest.mark.parametrize(
    ("states", "types", "matches"),
    [
        ([], [], True),
        (["Empty"], [], True),
        (["eMPTY", "Stable"], [], True),
        (["Stable"], [], False),
        (["nonsense"], [], False),
        ([], ["classic"], True),
        ([], ["CLASSIC", "consumer"], True),
        ([], ["consumer"], False),
        ([], ["nonsense"], False),
        (["Empty"], ["consumer"], False),
    ],
)
def test_filters(states: list[str], types: list[str], matches: bool) -> None:
    group = GroupMetadata("g", ManualClock())
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    assert group_filter(request)(group) is matches


def test_a_group_that_does_not_exist_is_dead_and_no_error() -> None:
    described = describe_group("g", None)
    assert (described.error_code, described.group_state) == (ErrorCode.NONE, GroupState.DEAD.value)


def test_a_group_that_may_not_be_described_has_no_state() -> None:
    described = not_described("g", ErrorCode.NOT_COORDINATOR)
    assert (described.error_code, described.group_state, described.members) == (ErrorCode.NOT_COORDINATOR, "", [])
