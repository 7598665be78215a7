"""The disk of a broker is full, or slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.faults.rules.durations import to_ms
from odradek.testing.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from odradek.testing.scenarios.scenario import Asked


def disk_full(broker: Asked) -> Scenario:
    """Nothing can be written. Records are refused with KAFKA_STORAGE_ERROR until the broker finds room again: it looks
    every second, by its clock.
    """
    return Scenario(broker, full=True)


def slow_disk(broker: Asked, sync: str | int = "500ms") -> Scenario:
    """Each sync takes so long, by the clock of the machine. Records wait for it with `flush.messages` of their topic;
    new topics always do.
    """
    return Scenario(broker, sync_ms=to_ms(sync))
