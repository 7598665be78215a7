"""The port of an observer of groups: which events it gets.

Without an observer each event costs one test for None. The calls must not wait, and must not change the group.
"""

from __future__ import annotations

from typing import Protocol

from odradek.coordinator.group.state.group_metadata import GroupMetadata


class GroupObserver(Protocol):
    """Gets the events of all groups of one coordinator."""

    def rebalance_begins(self, group: GroupMetadata, reason: str) -> None:
        """The group is in PreparingRebalance now, still with its old generation."""

    def changed(self, group: GroupMetadata) -> None:
        """The generation, the state, the members or the committed offsets of the group may have changed. A group that
        is gone is Dead.
        """
