"""Questions about transactional ids: their state, and how often they have committed and aborted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.testing.node.questions.questions import question
from odradek.testing.observations.waits import Change

if TYPE_CHECKING:
    from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata
    from odradek.testing.observations.observations import ObservedBroker

OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionView:
    """One transactional id. Times are milliseconds since the epoch, of the clock of the broker."""

    transactional_id: str
    state: str
    """Kafka's name: `Ongoing`."""
    producer_id: int
    producer_epoch: int
    partitions: tuple[tuple[str, int], ...]
    timeout_ms: int
    started_ms: int | None
    """None if no transaction has begun."""
    age_ms: int | None
    """Since the beginning of the open transaction; None if none is open."""
    commits: int
    """Since the test began; so are `aborts` and `history`."""
    aborts: int
    history: tuple[tuple[str, int], ...]
    """The states that were entered, and when."""

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsAnswer:
    """The transactions after so many changes of transactions."""

    changes: int
    transactions: tuple[TransactionView, ...]


@question
async def transactions(
    broker: ObservedBroker, *, transactional_id: str | None = None, after: int | None = None, wait_s: float = 0
) -> TransactionsAnswer:
    """All transactional ids or one, now; or, with `after`, when more changes than that have happened, or when the wait
    is over.

    Raises: BrokerStopped.
    """
    waits = broker.observations.waits

    def look() -> bool | None:
        return True if after is None or waits.count(Change.TRANSACTIONS) > after else None

    await waits.until(look, (Change.TRANSACTIONS,), wait_s)
    return TransactionsAnswer(
        changes=waits.count(Change.TRANSACTIONS), transactions=tuple(views_of(broker, transactional_id))
    )


def views_of(broker: ObservedBroker, transactional_id: str | None = None) -> list[TransactionView]:
    """All transactional ids of this broker, or the one with this name, sorted."""
    return sorted(
        (
            _view(broker, metadata)
            for metadata in broker.services.transaction_coordinator.states.transactions
            if transactional_id is None or metadata.transactional_id == transactional_id
        ),
        key=lambda view: view.transactional_id,
    )


def _view(broker: ObservedBroker, metadata: TransactionMetadata) -> TransactionView:
    outcomes = broker.observations.transactions.of(metadata.transactional_id)
    started_ms = metadata.start_timestamp_ms if metadata.start_timestamp_ms >= 0 else None
    is_open = str(metadata.state) in OPEN_STATES
    return TransactionView(
        transactional_id=metadata.transactional_id,
        state=str(metadata.state),
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        partitions=tuple(sorted((each.topic, each.partition) for each in metadata.topic_partitions)),
        timeout_ms=metadata.timeout_ms,
        started_ms=started_ms,
        age_ms=broker.services.clock.time_ms() - started_ms if is_open and started_ms is not None else None,
        commits=outcomes.commits,
        aborts=outcomes.aborts,
        history=tuple(outcomes.states),
    )
