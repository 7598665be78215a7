"""Seeds with a topic that worker processes compress anew: appends that wait, while faults happen."""

from __future__ import annotations

import pytest

from tests.support.simulation.seeds import run_seeds

SEEDS = 10
TIMEOUT_S = 600
"""For a machine that has much else to do: alone it is a matter of seconds."""


@pytest.mark.timeout(TIMEOUT_S)
def test_what_must_hold_holds_while_appends_wait_for_workers() -> None:
    run_seeds(3_000_000, SEEDS, "--recompression")
