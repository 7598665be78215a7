"""Transactions on three whole brokers in one process, under the same faults: all or nothing of each, and all end."""

from __future__ import annotations

import pytest

from tests.simulation.test_simulation import TIMEOUT_S
from tests.support.simulation.seeds import run_seeds

SEEDS = 20


@pytest.mark.timeout(TIMEOUT_S)
def test_every_transaction_is_there_as_a_whole_or_not_at_all() -> None:
    run_seeds(0, SEEDS, "--transactions")
