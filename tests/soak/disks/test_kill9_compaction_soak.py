"""kill -9 while compaction and retention run under load, two hundred times, also while the broker is starting.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_KILLS shortens the run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compaction.killed_compaction import SETTINGS, Killing
from tests.support.processes.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "200"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path, SETTINGS)
    process.start()
    yield process
    process.close()


def test_nothing_is_lost_and_nothing_comes_back(broker: OdradekBroker) -> None:
    print(f"seed {SEED}, {KILLS} kills")
    killing = Killing(broker, SEED)
    for number in range(KILLS):
        killing.kill_once(number)
    killing.finish()
    broker.stop_cleanly()
