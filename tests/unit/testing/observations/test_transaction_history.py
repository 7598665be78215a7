from __future__ import annotations

import pytest

from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata
from odradek.testing.observations import transaction_history
from odradek.testing.observations.transaction_history import TransactionHistory
from odradek.testing.observations.waits import Change, Waits
from odradek.timer.clock import ManualClock


def entered(history: TransactionHistory, transactional_id: str, *states: TransactionState) -> None:
    for state in states:
        history.changed(
            TransactionMetadata(transactional_id, producer_id=1, timeout_ms=1, state=state, last_update_timestamp_ms=0)
        )


def test_outcomes_are_counted() -> None:
    waits = Waits()
    history = TransactionHistory(ManualClock(5), waits)
    states = TransactionState
    entered(history, "id", states.ONGOING, states.ONGOING, states.PREPARE_COMMIT, states.COMPLETE_COMMIT)
    entered(history, "id", states.ONGOING, states.PREPARE_ABORT, states.COMPLETE_ABORT)
    outcomes = history.of("id")
    assert (outcomes.commits, outcomes.aborts) == (1, 1)
    assert list(outcomes.states) == [
        ("Ongoing", 5),
        ("PrepareCommit", 5),
        ("CompleteCommit", 5),
        ("Ongoing", 5),
        ("PrepareAbort", 5),
        ("CompleteAbort", 5),
    ]
    assert waits.count(Change.TRANSACTIONS) == 7
    history.clear()
    assert (history.of("id").commits, history.of("other").commits) == (0, 0)


def test_the_oldest_ids_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_history, "IDS_MAX", 2)
    history = TransactionHistory(ManualClock(), Waits())
    for name in ("a", "b", "c"):
        entered(history, name, TransactionState.COMPLETE_COMMIT)
    assert [history.of(name).commits for name in ("a", "b", "c")] == [0, 1, 1]
