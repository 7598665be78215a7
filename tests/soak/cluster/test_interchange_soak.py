"""A log directory passes between brokers at random, also to the same one again, after stops and after kills.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_LEGS shortens the run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.loads.interchange import Relay, run_leg
from tests.support.loads.ledger import Ledger
from tests.support.processes.apache.apache import ZooKeeper

pytestmark = pytest.mark.soak

LEGS = int(os.environ.get("ODRADEK_SOAK_LEGS", "40"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))


def test_long_relay(tmp_path: Path) -> None:
    print(f"seed {SEED}, {LEGS} legs")
    rng = random.Random(SEED)
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    relay, ledger = Relay(tmp_path / "node", zookeeper), Ledger(random=rng)
    before = "stop"
    try:
        zookeeper.start()
        for _ in range(LEGS):
            ending = rng.choice(("stop", "kill"))
            run_leg(relay, ledger, rng.choice(("odradek", "apache")), before, ending)
            before = ending
    finally:
        relay.close()
        zookeeper.stop()
