"""Loss of power at any point: flushed records are there, and no record that was not appended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.disks.power_loss import PowerLoss

SEEDS = 60
CUTS = [174, 1102, 1547, 1661]
"""Where the power goes while a log is cut: without a checkpoint before, a start believes holes and torn indexes."""


@pytest.mark.parametrize("seed", [*range(SEEDS), *CUTS])
def test_what_was_flushed_survives_the_loss_of_power(memory_path: Path, seed: int) -> None:
    PowerLoss(seed, memory_path).run()
