"""The leader of a partition moves: what clients see of it from one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.faults.rules.shorthands import spelled_out
from odradek.testing.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from odradek.testing.scenarios.scenario import Asked


def leader_move(
    broker: Asked, topic: str, partition: int | None = None, *, refused: int = 1, without_leader: int = 1
) -> Scenario:
    """`refused` requests are told that this is not the leader, and `without_leader` answers to Metadata know no leader.

    After that the broker leads again. 0 leaves a step out.
    """
    where: dict[str, object] = {"topic": topic} | ({} if partition is None else {"partition": partition})
    steps = {"not_leader": refused, "leader_not_available": without_leader}
    return Scenario(
        broker, [spelled_out(name, keys={**where, "times": times}) for name, times in steps.items() if times]
    )
