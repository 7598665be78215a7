"""The same as tests/simulation/test_simulation.py with ten thousand seeds; ODRADEK_SOAK_SIMULATIONS shortens it."""

from __future__ import annotations

import os

import pytest

from tests.support.simulation.seeds import run_seeds

pytestmark = pytest.mark.soak

SEEDS = int(os.environ.get("ODRADEK_SOAK_SIMULATIONS", "10000"))
SEEDS_AT_ONCE = 500


@pytest.mark.parametrize("options", [(), ("--transactions",), ("--clean-stops",), ("--recompression",)])
def test_what_must_hold_holds_at_each_step_of_ten_thousand_seeds(options: tuple[str, ...]) -> None:
    for first in range(0, SEEDS, SEEDS_AT_ONCE):
        run_seeds(first, min(SEEDS_AT_ONCE, SEEDS - first), *options)
