"""Waiting for consumer groups, as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.coordinator.group.state.group_states import GroupState
from odradek.testing.assertions.asking import Deadline, ask, check_name
from odradek.testing.assertions.group_questions import MISSING, GroupAnswer, GroupView
from odradek.testing.errors import WaitTimedOut

if TYPE_CHECKING:
    from odradek.testing.assertions.asking import Steps

GroupWhere = Callable[[GroupView], object]


def ids() -> Steps[list[str]]:
    """The ids of all groups, sorted."""
    return ask(list, "groups")


def view(group_id: str) -> Steps[GroupView]:
    """The group now."""
    answer = yield from ask(GroupAnswer, "group_view", group_id=group_id)
    return answer.group


def wait_for(group_id: str, where: GroupWhere, wanted: str, timeout_s: float) -> Steps[GroupView]:
    """The group, when `where` takes it. `wanted`: the same in words. Raises: WaitTimedOut, BrokerStopped."""
    deadline = Deadline(timeout_s)
    answer = yield from ask(GroupAnswer, "group_view", group_id=group_id)
    while not where(answer.group):
        if deadline.is_over:
            what = yield from _what_is_there(answer.group)
            raise WaitTimedOut(f"Waited {deadline} for group {group_id} {wanted}: {what}")
        answer = yield from ask(
            GroupAnswer, "group_view", group_id=group_id, after=answer.changes, wait_s=deadline.left_s
        )
    return answer.group


def in_state(state: str, members: int | None) -> GroupWhere:
    """Takes the group in this state, with so many members. Raises: ValueError for an unknown state."""
    check_name(state, (each.value for each in GroupState), "state of a group")
    return lambda group: group.state == state and members in (None, len(group.members))


def has_offset(topic: str, partition: int, offset: int) -> GroupWhere:
    """Takes the group when it has committed at least the offset."""

    def takes(group: GroupView) -> bool:
        committed = group.offsets.get((topic, partition))
        return committed is not None and committed.offset >= offset

    return takes


def _what_is_there(group: GroupView) -> Steps[str]:
    if group.state == MISSING:
        names = yield from ids()
        return f"there is no such group; there are: {', '.join(names) or 'none'}"
    return "\n".join(lines_of(group))


def lines_of(group: GroupView) -> list[str]:
    """The group in a few lines."""
    lines = [
        f"{group.group_id}: {group.state}, generation {group.generation}, {len(group.members)} members, lag {group.lag}"
    ]
    for member in group.members:
        assigned = ", ".join(f"{topic} {list(indexes)}" for topic, indexes in sorted(member.assignment.items()))
        lines.append(f"  member {member.member_id} at {member.client_host}: {assigned or 'nothing assigned'}")
    for (topic, partition), committed in group.offsets.items():
        lag = "unknown" if committed.lag is None else committed.lag
        lines.append(f"  offset {topic}-{partition}: {committed.offset}, lag {lag}")
    for rebalance in group.history[-3:]:
        generation = "still joining" if rebalance.generation is None else f"generation {rebalance.generation}"
        lines.append(f"  rebalance to {generation}: {rebalance.reason}")
    return lines
