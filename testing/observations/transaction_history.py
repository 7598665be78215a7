"""How often each transactional id has committed and aborted, collected from events of the coordinator.

A producer may begin its next transaction at once, so the state alone does not show that a transaction has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.coordinator.transaction.states import TransactionState
from odradek.testing.observations.waits import Change, Waits

if TYPE_CHECKING:
    from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata
    from odradek.timer.clock import Clock

STATES_MAX: Final = 200
"""Of each transactional id, the last ones."""

IDS_MAX: Final = 1_000
"""Transactional ids with a history; the oldest is dropped."""


@dataclass(slots=True)
class Outcomes:
    """Of one transactional id."""

    commits: int = 0
    aborts: int = 0
    states: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=STATES_MAX))
    """Kafka's name of each state that was entered, and when, in milliseconds since the epoch."""


class TransactionHistory:
    """The outcomes of one broker, by transactional id."""

    def __init__(self, clock: Clock, waits: Waits) -> None:
        self._clock = clock
        self._waits = waits
        self._outcomes: dict[str, Outcomes] = {}

    def changed(self, metadata: TransactionMetadata) -> None:
        """A change of the transaction is in the log."""
        outcomes = self._outcomes.get(metadata.transactional_id)
        if outcomes is None:
            outcomes = self._outcomes[metadata.transactional_id] = Outcomes()
            if len(self._outcomes) > IDS_MAX:
                del self._outcomes[next(iter(self._outcomes))]
        outcomes.commits += metadata.state is TransactionState.COMPLETE_COMMIT
        outcomes.aborts += metadata.state is TransactionState.COMPLETE_ABORT
        name = str(metadata.state)
        if not outcomes.states or outcomes.states[-1][0] != name:
            outcomes.states.append((name, self._clock.time_ms()))
        self._waits.announce(Change.TRANSACTIONS)

    def of(self, transactional_id: str) -> Outcomes:
        return self._outcomes.get(transactional_id) or Outcomes()

    def clear(self) -> None:
        """Count from 0 again."""
        self._outcomes.clear()
