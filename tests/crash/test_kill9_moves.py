"""kill -9 while partitions move between disks under an acks=all load: the moves continue, and nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.loads.killed_moves import KilledMoves

KILLS = 4


def test_what_was_acknowledged_survives_kills_during_moves(tmp_path: Path) -> None:
    moves = KilledMoves(tmp_path, random.Random(7))
    try:
        moves.run(KILLS)
    finally:
        moves.broker.close()
    assert moves.finished > KILLS
