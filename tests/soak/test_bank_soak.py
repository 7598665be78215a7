"""Money moved in transactions while the broker is killed thirty times: no aborted read, no torn transaction.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices (not the scheduling of the machine), ODRADEK_SOAK_KILLS
shortens the run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bank import Bank
from tests.support.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "30"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
TELLERS = 4
TRANSFERS_PER_KILL = 15


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    small = {"log.segment.bytes": "50000", "transaction.state.log.segment.bytes": "20000"}
    process = OdradekBroker(tmp_path, small)
    process.start()
    yield process
    process.close()


def test_the_books_balance(broker: OdradekBroker) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    bank = Bank(broker.bootstrap, tellers=TELLERS, transfers=KILLS * TRANSFERS_PER_KILL, seed=SEED)
    bank.outlive(broker, KILLS, random.Random(SEED))
    bank.check()
    assert bank.aborted
