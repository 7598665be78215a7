"""The same random requests to Apache Kafka and to Odradek: their answers are the same, field by field."""

from __future__ import annotations

from pathlib import Path

from tests.support.differential.comparison import compare
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker, running

SEED = 7
STEPS = 300


def test_answers_are_the_same(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    apache = ApacheBroker(tmp_path / "apache", zookeeper.new_chroot())
    try:
        apache.start()
        with running(OdradekBroker(tmp_path / "odradek")) as odradek:
            differences = compare(apache, odradek, SEED, STEPS)
        apache.stop()
    finally:
        apache.close()
    assert not differences, "Apache != ours:\n" + "\n".join(differences)
