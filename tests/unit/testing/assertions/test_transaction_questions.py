from __future__ import annotations

import pytest

from odradek.testing.errors import BrokerStopped
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient


def test_an_open_transaction(observed: ObservedBroker) -> None:
    client = TransactionalClient(observed, "id", timeout_ms=5_000)
    client.send("t", b"a")
    observed.inner.advance(30)
    (transaction,) = observed.transactions()
    assert (transaction.transactional_id, transaction.state, transaction.is_open) == ("id", "Ongoing", True)
    assert (transaction.producer_id, transaction.producer_epoch) == (client.producer["producer_id"], 0)
    assert (transaction.partitions, transaction.timeout_ms, transaction.age_ms) == ((("t", 0),), 5_000, 30)
    assert [state for state, _ in transaction.history] == ["Empty", "Ongoing"]
    assert f"  id: Ongoing, producer {transaction.producer_id} epoch 0, 0 committed, 0 aborted, open for 30 ms of " in (
        observed.failure_report()
    )


def test_a_broker_that_stops_ends_a_wait_for_a_transaction(observed: ObservedBroker) -> None:
    observed.meanwhile(lambda: observed.observations.close("stopped"))
    with pytest.raises(BrokerStopped, match="stopped"):
        observed.transaction("id").wait_for_committed()
