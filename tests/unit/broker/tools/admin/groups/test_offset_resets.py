from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.admin.groups.groups import main
from odradek.broker.tools.admin.groups.offset_resets import export_lines, parse_plan
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_groups import AdminGroups, member

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
RESET = ("--reset-offsets", "--group", "g")


@pytest.fixture(autouse=True)
def some_groups(groups: AdminGroups, cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [2]))
    groups.has("g", offsets={("t", 0): 40})
    groups.has("busy", member("m"), state="Stable")


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (["--topic", "t", "--to-earliest"], [10, 10]),
        (["--topic", "t", "--to-latest"], [100, 100]),
        (["--topic", "t", "--to-current"], [40, 100]),
        (["--topic", "t", "--to-offset", "70"], [70, 70]),
        (["--topic", "t:1,0", "--to-offset", "5"], [10, 10]),
        (["--topic", "t", "--to-offset", "1000"], [100, 100]),
        (["--all-topics", "--shift-by", "-7"], [33]),
        (["--all-topics", "--shift-by", "100"], [100]),
        (["--topic", "t:0", "--to-datetime", "1970-01-01T00:00:05.000"], [50]),
        (["--topic", "t:0", "--to-datetime", "1970-01-01T00:00:05.001Z"], [100]),
        (["--topic", "t:0", "--by-duration", "P100000D"], [50]),
        (["--topic", "t:0", "--by-duration", "PT0S"], [100]),
    ],
)
def test_new_offsets_are_printed_and_committed(
    to: list[str], expected: list[int], command: Command, groups: AdminGroups
) -> None:
    status, lines, _ = command(main, *RESET, *to, "--dry-run")
    assert (status, lines[0]) == (0, "")
    rows = [line.split() for line in lines[1:]]
    assert rows[0] == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert rows[1:] == [["g", "t", str(index), str(offset)] for index, offset in enumerate(expected)]
    assert groups.commits == []
    assert command(main, *RESET, *to, "--execute")[:2] == (0, lines)
    assert groups.commits == [("g", TopicPartition("t", index), offset) for index, offset in enumerate(expected)]


def test_without_execute_a_warning_says_that_nothing_is_done(command: Command, groups: AdminGroups) -> None:
    _, _, error = command(main, *RESET, "--topic", "t:0", "--to-offset", "7")
    assert error.splitlines()[0].startswith("WARN: No action will be performed as the --execute option is missing.")
    assert error.splitlines()[1] == (
        "WARN: New offset (7) is lower than earliest offset for topic partition t-0. Value will be set to 10"
    )
    assert groups.commits == []


def test_what_is_exported_is_read_again(command: Command, groups: AdminGroups, tmp_path: Path) -> None:
    _, lines, _ = command(main, *RESET, "--topic", "t", "--to-earliest", "--export", "--dry-run")
    assert lines == ["t,0,10", "t,1,10"]
    plan = tmp_path / "plan.csv"
    plan.write_text("\n".join(lines) + "\n\n")
    assert command(main, *RESET, "--from-file", str(plan), "--execute")[0] == 0
    assert groups.commits == [("g", T0, 10), ("g", T1, 10)]


def test_a_plan_for_several_groups_names_them(command: Command, groups: AdminGroups, tmp_path: Path) -> None:
    groups.has("h")
    both = ("--reset-offsets", "--group", "g", "--group", "h")
    _, lines, _ = command(main, *both, "--topic", "t:0", "--to-latest", "--export", "--dry-run")
    assert lines == ["g,t,0,100", "h,t,0,100"]
    plan = tmp_path / "plan.csv"
    plan.write_text("g,t,0,20\n")
    status, _, error = command(main, *both, "--from-file", str(plan), "--dry-run")
    assert (status, error) == (1, "odradek: No reset plan for group h found\n")


def test_names_with_commas_survive_the_export() -> None:
    lines = export_lines([('a,"b', "t", 0, 1)], is_one_group=False)
    assert parse_plan("\n".join(lines), []) == {'a,"b': {T0: 1}}


@pytest.mark.parametrize("text", ["t,0", "t,x,1", "t,0,1,2,3", 'g,"t,0,1'])
def test_a_plan_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="the reset plan must have lines"):
        parse_plan(text, ["g"])
    with pytest.raises(CommandFailed, match="the reset plan must have lines"):
        parse_plan("t,0,1", ["g", "h"])


def test_a_missing_plan_is_an_error(command: Command) -> None:
    status, _, error = command(main, *RESET, "--from-file", "/nonexistent", "--dry-run")
    assert (status, error.startswith("odradek: cannot read the reset plan: ")) == (1, True)


def test_a_group_with_members_is_left_alone(command: Command, groups: AdminGroups) -> None:
    status, _, error = command(main, "--reset-offsets", "--group", "busy", "--topic", "t", "--to-latest", "--execute")
    assert (status, groups.commits) == (1, [])
    assert error == (
        "odradek: Assignments can only be reset if the group 'busy' is inactive, but the current state is Stable.\n"
    )


def test_a_group_that_does_not_exist_is_made(command: Command, groups: AdminGroups) -> None:
    assert command(main, "--reset-offsets", "--group", "new", "--topic", "t:1", "--to-latest", "--execute")[0] == 0
    assert groups.commits == [("new", T1, 100)]


def test_an_offset_that_is_not_committed_cannot_be_shifted(command: Command) -> None:
    status, _, error = command(main, *RESET, "--topic", "t", "--shift-by", "1", "--dry-run")
    assert (status, error) == (
        1,
        "odradek: Cannot shift offset for partition t-1 since there is no current committed offset\n",
    )


def test_a_refused_commit_is_an_error(command: Command, groups: AdminGroups) -> None:
    to_latest = (*RESET, "--topic", "t:0", "--to-latest", "--execute")
    groups.commit_errors = [ErrorCode.NOT_COORDINATOR]
    assert command(main, *to_latest)[0] == 0
    assert groups.commits == [("g", T0, 100)] * 2, "it was tried again"
    groups.commit_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    assert command(main, *to_latest) == (
        1,
        [],
        "odradek: Committing offset 100 of group 'g' in t-0: The coordinator is not aware of this member.\n",
    )


def test_an_answer_that_does_not_name_a_partition_is_an_error(command: Command, cluster: AdminCluster) -> None:
    cluster.on(OffsetCommitRequest, lambda broker_id, request: OffsetCommitResponse())
    assert command(main, *RESET, "--topic", "t:0", "--to-latest", "--execute") == (
        1,
        [],
        "odradek: Committing offset 100 of group 'g' in t-0: the answer does not name it\n",
    )


def test_a_partition_that_does_not_exist_is_an_error(command: Command) -> None:
    status, _, error = command(main, *RESET, "--topic", "t:9", "--to-latest", "--dry-run")
    assert (status, error) == (1, "odradek: Offset of t-9: This server does not host this topic-partition.\n")
