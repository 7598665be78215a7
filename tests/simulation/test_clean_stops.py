"""One broker of three stops cleanly, four times for each seed: no partition is silent for more than a second."""

from __future__ import annotations

import pytest

from tests.simulation.test_simulation import TIMEOUT_S
from tests.support.simulation.seeds import run_seeds

SEEDS = 8


@pytest.mark.timeout(TIMEOUT_S)
def test_a_clean_stop_silences_no_partition() -> None:
    run_seeds(0, SEEDS, "--clean-stops")
