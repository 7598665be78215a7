from __future__ import annotations

import pytest

from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.group_metadata_manager import GroupMetadataManager
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.timer.sliced_work import run_through
from tests.support.transcripts.group_transcript import Transcript

READING = ["heartbeat m1", "sync m1", "leave m1", "commit m1 t-0:1", "fetch g t-0", "describe g", "delete g"]


@pytest.mark.parametrize("command", ["join m1", *READING, "txn-commit p1 t-0:1", "delete-offsets g t-0", "list"])
def test_before_startup_and_after_shutdown_nothing_is_served(command: str) -> None:
    transcript = Transcript()
    transcript.coordinator.shutdown()
    (answer,) = transcript.run(command)
    assert "COORDINATOR_NOT_AVAILABLE" in answer


def test_shutdown_answers_what_waits_and_leaves_no_timer() -> None:
    transcript = Transcript()
    transcript.run("join m1 v=3")
    transcript.run("join m2 v=3")
    transcript.run("wait 1ms")
    transcript.run("sync m2")
    transcript.coordinator.shutdown()
    assert transcript.run("waiting")[0] == "m2 <- SyncGroup NOT_COORDINATOR"
    assert transcript.timer.size == 0


def test_a_group_belongs_to_a_partition_of_the_topic() -> None:
    transcript = Transcript()
    assert transcript.coordinator.partition_for("my-group") == 0
    transcript.log.partition_count = 50
    assert transcript.coordinator.partition_for("my-group") == 12


def test_a_group_of_a_partition_that_is_led_elsewhere_is_not_served() -> None:
    transcript = Transcript()
    transcript.log.partition_count = 50
    transcript.run("restart")
    assert transcript.run("heartbeat m1 group=my-group") == ["m1 <- Heartbeat NOT_COORDINATOR"]


@pytest.mark.parametrize("command", [command for command in READING if not command.startswith("commit")])
def test_asking_for_a_group_does_not_create_it(command: str) -> None:
    transcript = Transcript()
    transcript.run(command)
    assert not list(transcript.coordinator.groups)


def test_without_a_tree_version_0_of_the_offset_requests_is_unsupported() -> None:
    transcript = Transcript()
    transcript.coordinator._offsets._tree = None
    assert transcript.run("commit c t-0:1 v=0") == ["c <- OffsetCommit t-0:UNSUPPORTED_VERSION"]
    assert transcript.run("fetch g t-0 v=0") == ["OffsetFetch UNSUPPORTED_VERSION t-0:-1:UNSUPPORTED_VERSION"]


def test_thousands_of_groups_come_and_go() -> None:
    transcript = Transcript()
    for index in range(200):
        transcript.run(f"join m{index} v=3 group=g{index}")
    transcript.run("wait 1ms")
    assert {group.state for group in transcript.coordinator.groups} == {GroupState.COMPLETING_REBALANCE}
    transcript.run("wait 10s")
    assert {group.state for group in transcript.coordinator.groups} == {GroupState.EMPTY}
    transcript.run("wait 10m")
    assert not list(transcript.coordinator.groups)
    assert transcript.coordinator.waiting_count == 0


def test_one_exception_does_not_end_the_expiry_of_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[object] = []

    def fail(manager: GroupMetadataManager) -> None:
        rounds.append(manager)
        if len(rounds) == 2:
            raise ValueError("a bug")

    monkeypatch.setattr(GroupMetadataManager, "expire_offsets", fail)
    transcript = Transcript()
    with pytest.raises(ExceptionGroup):
        transcript.run("wait 10m")
    transcript.run("wait 10m")
    assert len(rounds) == 3


def test_members_that_leave_while_their_group_moves_away_are_told_so() -> None:
    transcript = Transcript()
    transcript.run("join m1 v=3")
    transcript.run("wait 1ms")
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=f"m{n}") for n in range(3)])
    answers: list[LeaveGroupResponse] = []
    steps = transcript.coordinator.leave_group(GroupRequestContext("c", "h", 3), request, answers.append)
    next(steps)
    next(steps)
    transcript.coordinator.on_resigned(0, None)
    run_through(steps)
    assert answers == [LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, members=[])]
