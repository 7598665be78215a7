"""What groups have committed, from rows in any order."""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.lag.group_table import GroupPartition, GroupTable, committed_at_points
from spark_jobs.lag.offset_records import GROUP, MEMBER, OFFSET, UNREADABLE, AssignedMember

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Row(NamedTuple):
    kind: str
    log_offset: int
    group: str | None = "g"
    topic: str | None = None
    partition: int | None = None
    member_id: str | None = None
    point: int = 0
    removed: bool = False
    committed: int | None = None
    members: list[AssignedMember] | None = None
    records: int = 1


def commit(log_offset: int, committed: int | None, *, partition: int = 0, point: int = 0, group: str = "g") -> Row:
    return Row(
        OFFSET,
        log_offset,
        group,
        "t",
        partition,
        point=point,
        removed=committed is None,
        committed=committed,
    )


def members(*names: str) -> list[AssignedMember]:
    return [AssignedMember(name, "c", "h", [("t", 1)]) for name in names]


def test_the_last_commit_counts_and_a_tombstone_removes_it() -> None:
    table = GroupTable()
    table.apply([commit(9, 5), commit(3, 7), commit(4, 1, partition=1)])
    assert table.committed == {GroupPartition("g", T0): 5, GroupPartition("g", T1): 1}
    table.apply([commit(12, None)])
    assert table.committed == {GroupPartition("g", T1): 1}


def test_assigned_partitions_are_there_without_a_commit() -> None:
    table = GroupTable()
    table.apply([commit(1, 5), Row(GROUP, 2, members=members("m"))])
    assert table.partitions() == [GroupPartition("g", T0), GroupPartition("g", T1)]
    assert [member.member_id for member in table.members("g")] == ["m"]


def test_a_group_without_members_is_empty() -> None:
    table = GroupTable()
    table.apply([Row(GROUP, 1, members=members("m")), Row(GROUP, 2, members=[])])
    assert table.members("g") == []
    table.apply([Row(GROUP, 3, members=members("m")), Row(GROUP, 4, removed=True)])
    assert table.members("g") == []


def test_members_of_the_newer_protocol_come_and_go_one_by_one() -> None:
    table = GroupTable()
    table.apply(
        [Row(MEMBER, 1, member_id="a", members=members("a")), Row(MEMBER, 2, member_id="b", members=members("b"))]
    )
    assert len(table.members("g")) == 2
    table.apply([Row(MEMBER, 3, member_id="a", removed=True, members=[])])
    assert [member.member_id for member in table.members("g")] == ["b"]
    assert table.members("other") == []


def test_unreadable_records_are_counted() -> None:
    table = GroupTable()
    table.apply([Row(UNREADABLE, 1, None, records=3), Row(UNREADABLE, 2, None, records=2)])
    assert table.unreadable == 5


def test_commits_are_carried_on_to_the_points_after_them() -> None:
    rows = [commit(1, 10, point=1), commit(5, 30, point=3), commit(7, None, point=4), Row(GROUP, 2, members=[])]
    assert committed_at_points(rows, 6) == {GroupPartition("g", T0): [None, 10, 10, 30, None, None]}
