from __future__ import annotations

from odradek.protocol.api import ApiKey
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient


def test_waiting_for_outcomes(observed: ObservedBroker) -> None:
    client = TransactionalClient(observed, "id")
    for _ in range(2):
        client.send("t", b"a")
        observed.meanwhile(
            lambda: observed.dispatch(  # type: ignore[arg-type, return-value]
                ApiKey.END_TXN, 3, transactional_id="id", committed=True, **client.producer
            )
        )
        transaction = observed.transaction("id").wait_for_state("CompleteCommit")
    assert (transaction.commits, transaction.aborts, transaction.is_open, transaction.age_ms) == (2, 0, False, None)
    assert observed.transaction("id").wait_for_committed(2).commits == 2
    client.send("t", b"b")
    observed.inner.advance(100_000)
    assert observed.transaction("id").wait_for_aborted().aborts == 1, "the transaction has timed out"
