from __future__ import annotations

import pytest

from odradek.coordinator.group.state.responses import join_error, join_responder, shape_leave_group, sync_error
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse


@pytest.mark.parametrize("version", range(10))
def test_no_protocol_is_empty_up_to_version_6_and_null_from_7_on(version: int) -> None:
    answers: list[JoinGroupResponse] = []
    join_responder(answers.append, version)(join_error("m", ErrorCode.UNKNOWN_MEMBER_ID))
    (answer,) = answers
    assert answer.protocol_name == ("" if version < 7 else None)
    assert (answer.generation_id, answer.leader, answer.member_id) == (-1, "", "m")
    assert encode(answer, version)


@pytest.mark.parametrize("version", range(10))
def test_a_protocol_is_named_in_every_version(version: int) -> None:
    answers: list[JoinGroupResponse] = []
    join_responder(answers.append, version)(JoinGroupResponse(protocol_name="range"))
    assert answers[0].protocol_name == "range"


@pytest.mark.parametrize("version", range(6))
def test_sync_errors_carry_no_assignment(version: int) -> None:
    answer = sync_error(ErrorCode.REBALANCE_IN_PROGRESS)
    assert answer.assignment == b""
    assert encode(answer, version)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("top", [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])
def test_leave_has_one_error_up_to_version_2(version: int, top: ErrorCode) -> None:
    members = [MemberResponse(member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID)] if top == ErrorCode.NONE else []
    answer = shape_leave_group(LeaveGroupResponse(error_code=top, members=members), version)
    assert encode(answer, version)
    if version >= 3:
        assert (answer.error_code, answer.members) == (top, members)
    else:
        assert answer.error_code == (ErrorCode.UNKNOWN_MEMBER_ID if members else top)
        assert answer.members == []
