"""The rebalances of the groups of a broker, collected from events of its coordinator.

A rebalance begins when the group enters PreparingRebalance. Its generation begins when the members have joined, and it
ends when their assignment is stored or the group is empty.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.state.group_states import GroupState
from odradek.testing.observations.waits import Change, Waits

if TYPE_CHECKING:
    from odradek.coordinator.group.state.group_metadata import GroupMetadata
    from odradek.timer.clock import Clock

REBALANCES_MAX: Final = 200
"""Of each group, the last ones."""

GROUPS_MAX: Final = 1_000
"""Groups with a history; the oldest is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance of a group. Times are milliseconds since the epoch, of the clock of the broker."""

    reason: str
    began_ms: int
    generation: int | None = None
    """The new generation; None while members are joining."""
    members: tuple[str, ...] = ()
    """The ids of the members of the new generation."""
    joined: tuple[str, ...] = ()
    """Those that the generation before did not have."""
    left: tuple[str, ...] = ()
    """Those of the generation before that are gone."""
    ended_ms: int | None = None
    """None while the rebalance goes on."""


class _History:
    def __init__(self, group: GroupMetadata) -> None:
        self.rebalances: deque[Rebalance] = deque(maxlen=REBALANCES_MAX)
        self.generation = group.generation_id
        self.members: tuple[str, ...] = ()


class GroupHistory:
    """A `GroupObserver`."""

    def __init__(self, clock: Clock, waits: Waits) -> None:
        self._clock = clock
        self._waits = waits
        self._histories: dict[str, _History] = {}

    def rebalance_begins(self, group: GroupMetadata, reason: str) -> None:
        history = self._history(group)
        history.rebalances.append(Rebalance(reason=reason, began_ms=self._clock.time_ms()))
        self._waits.announce(Change.GROUPS)

    def changed(self, group: GroupMetadata) -> None:
        history = self._history(group)
        if history.rebalances and history.rebalances[-1].ended_ms is None:
            history.rebalances[-1] = self._gone_on(history, group, history.rebalances[-1])
        if group.is_dead:
            history.generation, history.members = 0, ()
        self._waits.announce(Change.GROUPS)

    def _gone_on(self, history: _History, group: GroupMetadata, rebalance: Rebalance) -> Rebalance:
        if group.generation_id != history.generation:
            before, members = history.members, tuple(group.member_ids)
            history.generation, history.members = group.generation_id, members
            rebalance = replace(
                rebalance,
                generation=group.generation_id,
                members=members,
                joined=tuple(member for member in members if member not in before),
                left=tuple(member for member in before if member not in members),
            )
        if group.state in (GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD):
            rebalance = replace(rebalance, ended_ms=self._clock.time_ms())
        return rebalance

    def _history(self, group: GroupMetadata) -> _History:
        history = self._histories.get(group.group_id)
        if history is None:
            history = self._histories[group.group_id] = _History(group)
            if len(self._histories) > GROUPS_MAX:
                del self._histories[next(iter(self._histories))]
        return history

    def rebalances(self, group_id: str) -> tuple[Rebalance, ...]:
        """Oldest first."""
        history = self._histories.get(group_id)
        return () if history is None else tuple(history.rebalances)

    def clear(self) -> None:
        """Forget the rebalances. Generations and members stay: the next rebalance is compared with them."""
        for history in self._histories.values():
            history.rebalances.clear()
