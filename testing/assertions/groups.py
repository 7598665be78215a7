"""`broker.group("g")`: one consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.assertions import group_steps
from odradek.testing.assertions.asking import DEFAULT_TIMEOUT_S, answered, answered_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.assertions.asking import AsksLater, AsksNow
    from odradek.testing.assertions.group_questions import CommittedOffset, GroupView, MemberView
    from odradek.testing.assertions.group_steps import GroupWhere
    from odradek.testing.observations.group_history import Rebalance


class Group:
    """One group of a broker, which need not exist yet. Each property is read at its own moment; `describe` is not."""

    def __init__(self, broker: AsksNow, group_id: str) -> None:
        self._broker = broker
        self.group_id = group_id

    def describe(self) -> GroupView:
        """The group now."""
        return answered(self._broker, group_steps.view(self.group_id))

    @property
    def state(self) -> str:
        """`Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable`; `Dead` for a group that does not exist."""
        return self.describe().state

    @property
    def generation(self) -> int:
        return self.describe().generation

    @property
    def protocol(self) -> str | None:
        """The assignor of consumers."""
        return self.describe().protocol

    @property
    def members(self) -> tuple[MemberView, ...]:
        return self.describe().members

    @property
    def offsets(self) -> Mapping[tuple[str, int], CommittedOffset]:
        """The committed offsets by topic and partition."""
        return self.describe().offsets

    @property
    def lag(self) -> int:
        """Of all partitions with a committed offset."""
        return self.describe().lag

    @property
    def history(self) -> tuple[Rebalance, ...]:
        """The rebalances since the test began, oldest first."""
        return self.describe().history

    def wait_for(self, where: GroupWhere, *, timeout: float = DEFAULT_TIMEOUT_S) -> GroupView:
        """The group, when `where` takes it. Raises: WaitTimedOut, BrokerStopped."""
        return answered(self._broker, group_steps.wait_for(self.group_id, where, "that `where` takes", timeout))

    def wait_for_state(
        self, state: str, *, members: int | None = None, timeout: float = DEFAULT_TIMEOUT_S
    ) -> GroupView:
        """The group, when it is in this state, with so many members. Raises: WaitTimedOut, BrokerStopped."""
        where, wanted = group_steps.in_state(state, members), _in_words(state, members)
        return answered(self._broker, group_steps.wait_for(self.group_id, where, wanted, timeout))

    def wait_for_offset(
        self, topic: str, partition: int, offset: int, *, timeout: float = DEFAULT_TIMEOUT_S
    ) -> GroupView:
        """The group, when it has committed at least this offset. Raises: WaitTimedOut, BrokerStopped."""
        where = group_steps.has_offset(topic, partition, offset)
        wanted = f"to commit offset {offset} of {topic}-{partition}"
        return answered(self._broker, group_steps.wait_for(self.group_id, where, wanted, timeout))


class AsyncGroup:
    """The same, for coroutines."""

    def __init__(self, broker: AsksLater, group_id: str) -> None:
        self._broker = broker
        self.group_id = group_id

    async def describe(self) -> GroupView:
        """The group now."""
        return await answered_later(self._broker, group_steps.view(self.group_id))

    async def wait_for(self, where: GroupWhere, *, timeout: float = DEFAULT_TIMEOUT_S) -> GroupView:
        """See `Group.wait_for`."""
        return await answered_later(
            self._broker, group_steps.wait_for(self.group_id, where, "that `where` takes", timeout)
        )

    async def wait_for_state(
        self, state: str, *, members: int | None = None, timeout: float = DEFAULT_TIMEOUT_S
    ) -> GroupView:
        """See `Group.wait_for_state`."""
        where, wanted = group_steps.in_state(state, members), _in_words(state, members)
        return await answered_later(self._broker, group_steps.wait_for(self.group_id, where, wanted, timeout))

    async def wait_for_offset(
        self, topic: str, partition: int, offset: int, *, timeout: float = DEFAULT_TIMEOUT_S
    ) -> GroupView:
        """See `Group.wait_for_offset`."""
        where = group_steps.has_offset(topic, partition, offset)
        wanted = f"to commit offset {offset} of {topic}-{partition}"
        return await answered_later(self._broker, group_steps.wait_for(self.group_id, where, wanted, timeout))


def _in_words(state: str, members: int | None) -> str:
    return f"to be {state}" + ("" if members is None else f" with {members} members")
