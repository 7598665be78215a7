from __future__ import annotations

import pytest

from odradek.testing.errors import WaitTimedOut
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient


def test_a_wait_that_times_out_shows_the_transactions(observed: ObservedBroker) -> None:
    with pytest.raises(WaitTimedOut, match="there is: no transactional id"):
        observed.transaction("id").wait_for_committed(timeout=0.01)
    TransactionalClient(observed, "other")
    with pytest.raises(WaitTimedOut) as error:
        observed.transaction("id").wait_for_committed(2, timeout=0.01)
    first, line = str(error.value).splitlines()
    assert first == "Waited 0.01 s for transactional id id to commit, 2 in all; there is:"
    assert line.startswith("    other: Empty, producer ")
    assert observed.transaction("id").describe() is None


def test_a_misspelt_state_is_refused(observed: ObservedBroker) -> None:
    with pytest.raises(
        ValueError, match="There is no state of a transaction 'ongoing'; Kafka's names are: CompleteAbort, "
    ):
        observed.transaction("id").wait_for_state("ongoing")
