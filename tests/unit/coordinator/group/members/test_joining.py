from __future__ import annotations

import pytest

from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.members.joining import Join
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.support.transcripts.group_notation import Line
from tests.support.transcripts.group_transcript import COMMANDS, Transcript


def join_of(version: int, **fields: object) -> tuple[Join, list[JoinGroupResponse]]:
    answers: list[JoinGroupResponse] = []
    context = GroupRequestContext(client_id="c", client_host="h", api_version=version)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6_000,
        rebalance_timeout_ms=9_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
        **fields,
    )
    return Join.of(context, request, answers.append), answers


def test_version_0_has_no_rebalance_timeout() -> None:
    assert join_of(0)[0].rebalance_timeout_ms == 6_000
    assert join_of(1)[0].rebalance_timeout_ms == 9_000


def test_a_join_becomes_a_member() -> None:
    join, _ = join_of(5, group_instance_id="i", protocol_type="consumer")
    member = join.new_member("m")
    assert (member.member_id, member.group_instance_id, member.client_id, member.client_host) == ("m", "i", "c", "/h")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (6_000, 9_000)
    assert member.protocols == (("range", b"m"),)


def test_a_failed_join_names_the_id_it_came_with() -> None:
    join, answers = join_of(5, member_id="m")
    join.fail(ErrorCode.UNKNOWN_MEMBER_ID)
    join.fail(ErrorCode.MEMBER_ID_REQUIRED, "new")
    assert [(answer.error_code, answer.member_id) for answer in answers] == [(25, "m"), (79, "new")]


@pytest.mark.parametrize("version", range(10))
def test_an_id_is_required_from_version_4_on(version: int) -> None:
    transcript = Transcript()
    answers = transcript.run(f"join m v={version}")
    if version >= 4:
        assert answers[0] == "m <- JoinGroup MEMBER_ID_REQUIRED member=m-1"
        answers = transcript.run(f"join m v={version}")
    assert answers == ["g: PreparingRebalance gen 0"]


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_leader_that_returns_must_not_assign(version: int) -> None:
    transcript = Transcript()
    for command in (f"join s instance=s v={version}", "wait 1ms", "sync s s:A"):
        transcript.run(command)
    (answer,) = transcript.run(f"join s id=none v={version}")
    if version >= 9:
        assert answer.endswith("leader=s-2 members=[s-2] skip-assignment member=s-2")
    else:
        assert answer.endswith("leader=s-1 member=s-2")
    assert transcript.run("sync s") == ["s <- SyncGroup NONE assignment=A"]


def test_a_replaced_member_that_did_not_sync_does_not_take_the_new_one_with_it() -> None:
    """The sync barrier expires while the replacement is being stored."""
    transcript = Transcript()
    commands = ("join d rebalance=1s v=3", "join s instance=s rebalance=1s", "wait 1ms", "sync d d:A s:B", "hold")
    for command in (*commands, "join s id=none rebalance=1s"):
        transcript.run(command)
    answers = transcript.run("wait 2s")  # d does not rejoin, and is removed
    assert "s <- JoinGroup NONE gen=2 protocol=range leader=s-3 members=[s-3] member=s-3" in answers
    assert not any(answer.startswith("s <-") for answer in transcript.run("release"))
    assert transcript.clients["s"].pending == 0


def test_a_request_behind_that_of_a_replaced_member_comes_after_the_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection handles the next request while it is told the answer to the one before."""
    transcript = Transcript()
    for command in ("join x v=3", "join y v=3", "join s instance=s", "wait 1ms", "sync x x:A y:B s:C"):
        transcript.run(command)
    for command in ("sync y", "sync s", "join x v=3", "join s protocols=range:u"):
        transcript.run(command)
    say = transcript.say

    def leave_when_fenced(text: str) -> None:
        say(text)
        if "FENCED_INSTANCE_ID" in text:
            monkeypatch.setattr(transcript, "say", say)
            COMMANDS["leave"](transcript, Line.parse("leave none/s"))

    monkeypatch.setattr(transcript, "say", leave_when_fenced)
    told = transcript.run("join s id=none")
    assert [line.split(" member=")[0] for line in told] == [
        "s <- JoinGroup FENCED_INSTANCE_ID",
        "s <- JoinGroup UNKNOWN_MEMBER_ID",
        "none/s <- LeaveGroup NONE s:NONE",
    ]
    (group,) = transcript.coordinator.groups
    assert group.awaiting_join_count == 1, "x, which waits for y"
    assert transcript.clients["s"].pending == 0


def test_ids_begin_with_the_client_id_or_the_instance_id() -> None:
    transcript = Transcript()
    assert transcript.run("join dynamic")[0].endswith("member=dynamic-1")
    transcript.run("leave dynamic")
    transcript.run("join static instance=my-instance")
    assert transcript.run("wait 1ms")[0].endswith("member=my-instance-2")


def test_a_repeated_join_takes_the_place_of_the_one_that_waits() -> None:
    transcript = Transcript()
    for command in ("join a v=3", "join b v=3", "wait 1ms", "sync a a:A b:B"):
        transcript.run(command)
    transcript.run("join a")
    assert transcript.run("join a") == ["a <- JoinGroup REBALANCE_IN_PROGRESS member=a-1"]
    assert len(transcript.run("join b")) == 3
    assert transcript.clients["a"].pending == 0
