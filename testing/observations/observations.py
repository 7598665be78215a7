"""What the test kit observes in one broker: its requests, groups, transactions and log lines, and the waits for them.

Made on the event loop of the broker after its start. Nothing of it exists in a broker that `odradek serve` runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.testing.observations.group_history import GroupHistory
from odradek.testing.observations.request_recorder import RequestRecorder
from odradek.testing.observations.transaction_history import TransactionHistory
from odradek.testing.observations.waits import Waits
from odradek.testing.observations.warning_lines import LOGGER, WarningLines

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services


class Observations:
    """The observers of one broker, and what they have seen since the last `clear`."""

    def __init__(self, services: Services) -> None:
        self.waits = Waits()
        self.requests = RequestRecorder(services.clock, self.waits, services.metadata_cache.topic_name)
        self.groups = GroupHistory(services.clock, self.waits)
        self.transactions = TransactionHistory(services.clock, self.waits)
        self.warnings = WarningLines()
        services.observe_requests(self.requests)
        services.group_coordinator.observe(self.groups)
        services.transaction_coordinator.states.observer = self.transactions.changed
        LOGGER.addHandler(self.warnings)

    def clear(self) -> None:
        """Forget what was seen: the next test begins."""
        self.requests.clear()
        self.groups.clear()
        self.transactions.clear()
        self.warnings.clear()

    def close(self, reason: str = "The broker has stopped") -> None:
        """End all waits with `BrokerStopped`, and let go of the log."""
        self.waits.close(reason)
        LOGGER.removeHandler(self.warnings)
        self.warnings.close()


class ObservedBroker(Protocol):
    """A running broker, as questions about what it has see it. Implemented by `RunningBroker`."""

    @property
    def services(self) -> Services: ...

    @property
    def observations(self) -> Observations: ...
