"""Random requests to Apache Kafka and to Odradek, whose answers are compared field by field.

The seeds are printed; ODRADEK_SOAK_SEED sets the first one, ODRADEK_SOAK_SEQUENCES the number of sequences.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.differential.comparison import compare
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker, running

pytestmark = pytest.mark.soak

SEQUENCES = int(os.environ.get("ODRADEK_SOAK_SEQUENCES", "20"))
FIRST_SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**31))))
STEPS = 2000


def test_answers_are_the_same(tmp_path: Path) -> None:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    try:
        for seed in range(FIRST_SEED, FIRST_SEED + SEQUENCES):
            print(f"seed {seed}, {STEPS} steps")
            apache = ApacheBroker(tmp_path / f"apache-{seed}", server.new_chroot())
            try:
                apache.start()
                with running(OdradekBroker(tmp_path / f"odradek-{seed}")) as odradek:
                    differences = compare(apache, odradek, seed, STEPS)
            finally:
                apache.close()
            assert not differences, f"seed {seed}, Apache != ours:\n" + "\n".join(differences)
    finally:
        server.stop()
