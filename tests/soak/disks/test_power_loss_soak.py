"""The same as tests/crash/test_power_loss.py, thousands of times; a failure prints its seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.disks.power_loss import PowerLoss

pytestmark = pytest.mark.soak

SEEDS = 10_000


def test_what_was_flushed_survives_thousands_of_losses_of_power(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        print(f"seed {seed}")
        PowerLoss(seed, tmp_path / str(seed)).run()
