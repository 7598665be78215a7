from __future__ import annotations

import logging

from odradek.testing.observations.waits import Change
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient
from tests.support.in_process.observed_groups import joined


def test_all_observers_are_connected(observed: ObservedBroker) -> None:
    joined(observed)
    TransactionalClient(observed, "id").send("t", b"a")
    logging.getLogger("odradek.test").warning("slow")
    seen = observed.observations
    assert all(seen.waits.count(kind) for kind in Change if kind not in (Change.RECORDS, Change.EXCHANGES))
    assert seen.requests.last_number > 0
    assert len(seen.groups.rebalances("g")) == 1
    assert len(seen.transactions.of("id").states) == 2
    assert seen.warnings.lines == ["WARNING odradek.test: slow"]


def test_a_clear_forgets_all(observed: ObservedBroker) -> None:
    joined(observed)
    TransactionalClient(observed, "id").send("t", b"a")
    logging.getLogger("odradek.test").warning("slow")
    seen = observed.observations
    seen.clear()
    assert list(seen.requests.after(0)) == []
    assert seen.groups.rebalances("g") == ()
    assert not seen.transactions.of("id").states
    assert seen.warnings.lines == []


def test_a_close_takes_the_handler_from_the_log(observed: ObservedBroker) -> None:
    handlers = logging.getLogger("odradek").handlers
    assert observed.observations.warnings in handlers
    observed.observations.close()
    assert observed.observations.warnings not in handlers
