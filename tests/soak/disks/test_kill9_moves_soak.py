"""The same as `tests/crash/test_kill9_moves.py`, a hundred times. ODRADEK_SOAK_SEED repeats its choices."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.loads.killed_moves import KilledMoves

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "100"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))


def test_what_was_acknowledged_survives_kills_during_moves(tmp_path: Path) -> None:
    moves = KilledMoves(tmp_path, random.Random(SEED))
    try:
        moves.run(KILLS)
    finally:
        moves.broker.close()
    print(f"seed {SEED}, {KILLS} kills, {moves.finished} moves finished, {moves.refused} starts refused")
    assert moves.finished > KILLS
