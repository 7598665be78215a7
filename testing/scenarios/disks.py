"""The disk of a broker is full, or slow.

with scenarios.disk_full(broker) as scenario:
    produce(broker)
broker.faults.replay(scenario.record())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from odradek.broker.faults.rules.durations import to_ms
from odradek.testing.assertions.asking import answered, answered_later
from odradek.testing.assertions.request_steps import Selection, last_number, select
from odradek.testing.scenarios.answer_record import record_of
from odradek.testing.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from odradek.broker.faults.record import FaultRecord
    from odradek.testing.assertions.asking import AsksLater
    from odradek.testing.scenarios.scenario import Asked


class DiskScenario(Scenario):
    """A disk that fails. What that meant for the requests of clients can be recorded, and replayed without the disk."""

    def __init__(self, broker: Asked, name: str, *, full: bool = False, sync_ms: int = 0) -> None:
        super().__init__(broker, full=full, sync_ms=sync_ms)
        self._broker = broker
        self._name = name
        self._sync_ms = sync_ms
        self._since = 0

    def __enter__(self) -> Self:
        self._since = answered(self._broker, last_number())
        return super().__enter__()

    async def __aenter__(self) -> Self:
        self._since = await answered_later(cast("AsksLater", self._broker), last_number())
        return await super().__aenter__()

    def record(self) -> FaultRecord:
        """The requests since the begin of the block with an error in their answers, or that waited for a sync.

        `broker.faults.replay` gives the same requests the same errors, and lets them wait as long.
        """
        requests = answered(self._broker, select(Selection(since=self._since)))
        return record_of(requests, self._name, slow_ms=self._sync_ms)

    async def record_async(self) -> FaultRecord:
        """The same for an `AsyncBroker`."""
        requests = await answered_later(cast("AsksLater", self._broker), select(Selection(since=self._since)))
        return record_of(requests, self._name, slow_ms=self._sync_ms)


def disk_full(broker: Asked) -> DiskScenario:
    """Nothing can be written. Records are refused with KAFKA_STORAGE_ERROR until the broker finds room again: it looks
    every second, by its clock.
    """
    return DiskScenario(broker, "disk_full", full=True)


def slow_disk(broker: Asked, sync: str | int = "500ms") -> DiskScenario:
    """Each sync takes so long, by the clock of the machine. Records wait for it with `flush.messages` of their topic;
    new topics always do.
    """
    return DiskScenario(broker, "slow_disk", sync_ms=to_ms(sync))
