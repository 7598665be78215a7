"""Money moved in transactions over a bad network while the broker and the tellers are killed a hundred times each.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices (not the scheduling of the machine), ODRADEK_SOAK_KILLS
shortens the run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.loads.bank.bank_run import survive
from tests.support.processes.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "100"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
TRANSFERS_PER_KILL = 10


def test_the_books_balance(tmp_path: Path) -> None:
    print(f"seed {SEED}, {KILLS} kills of the broker and of tellers")
    survive(
        lambda settings: OdradekBroker(tmp_path, settings),
        tellers=8,
        transfers=KILLS * TRANSFERS_PER_KILL,
        kills=KILLS,
        seed=SEED,
    )
