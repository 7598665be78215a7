"""The coordinator of groups and transactions moves: what clients see of it from one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.faults.rules.shorthands import spelled_out
from odradek.testing.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from odradek.testing.scenarios.scenario import Asked


def coordinator_failover(broker: Asked, *, moved: int = 1, unavailable: int = 1, loading: int = 1) -> Scenario:
    """A client is told `moved` times that this is not its coordinator, then `unavailable` times that there is none, and
    then `loading` times that the coordinator reads its log. After that all is as before. 0 leaves a step out.
    """
    steps = {"coordinator_moved": moved, "coordinator_not_available": unavailable, "coordinator_loading": loading}
    return Scenario(broker, [spelled_out(name, keys={"times": times}) for name, times in steps.items() if times])
