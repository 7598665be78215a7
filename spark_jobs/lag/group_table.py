"""What the groups of a cluster have committed and which members they have, from the rows of `__consumer_offsets`.

Plain values: the rows come from `last_by_point`, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.lag.offset_records import GROUP, MEMBER, OFFSET, UNREADABLE, AssignedMember

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class OffsetRow(Protocol):
    """A row of `last_by_point`."""

    kind: str
    group: str | None
    topic: str | None
    partition: int | None
    member_id: str | None
    point: int
    removed: bool
    committed: int | None
    members: Sequence[AssignedMember] | None
    log_offset: int
    records: int


class GroupPartition(NamedTuple):
    """A partition that a group reads."""

    group: str
    tp: TopicPartition


class GroupTable:
    """The committed offsets and the members of all groups; `apply` takes what is new."""

    def __init__(self) -> None:
        self.committed: dict[GroupPartition, int] = {}
        self.unreadable = 0
        self._classic: dict[str, Sequence[AssignedMember]] = {}
        self._newer: dict[tuple[str, str], Sequence[AssignedMember]] = {}

    def apply(self, rows: Iterable[OffsetRow]) -> None:
        """Take rows that are newer than all before."""
        for row in sorted(rows, key=lambda row: row.log_offset):
            group = row.group or ""
            if row.kind == OFFSET:
                _put(self.committed, group_partition(row), None if row.removed else row.committed)
            elif row.kind == GROUP:
                _put(self._classic, group, row.members or None)
            elif row.kind == MEMBER:
                _put(self._newer, (group, row.member_id or ""), row.members or None)
            elif row.kind == UNREADABLE:
                self.unreadable += row.records

    def members(self, group: str) -> list[AssignedMember]:
        """The members of a group; none of a group that is empty, or that only commits offsets."""
        found = list(self._classic.get(group, ()))
        for (of_group, _), members in self._newer.items():
            if of_group == group:
                found += members
        return found

    def partitions(self) -> list[GroupPartition]:
        """What groups have committed, and what is assigned to their members, in order."""
        found = set(self.committed)
        for group, members in self._classic.items():
            for member in members:
                found.update(GroupPartition(group, TopicPartition(*assigned)) for assigned in member.assigned)
        return sorted(found)


def committed_at_points(rows: Iterable[OffsetRow], count: int) -> dict[GroupPartition, list[int | None]]:
    """What each group had committed at each of `count` points; None: nothing, or nothing that is known.

    Kafka compacts `__consumer_offsets`, so the oldest commits of a window may be missing.
    """
    changes: dict[GroupPartition, dict[int, int | None]] = {}
    for row in rows:
        if row.kind == OFFSET:
            changes.setdefault(group_partition(row), {})[row.point] = None if row.removed else row.committed
    found: dict[GroupPartition, list[int | None]] = {}
    for key, of_key in changes.items():
        committed: int | None = None
        line = found[key] = []
        for point in range(count):
            committed = of_key.get(point, committed)
            line.append(committed)
    return found


def group_partition(row: OffsetRow) -> GroupPartition:
    return GroupPartition(row.group or "", TopicPartition(row.topic or "", row.partition or 0))


def _put(table: dict[KeyT, ValueT], key: KeyT, value: ValueT | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
