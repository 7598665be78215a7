"""kaskade, a console for the terminal that somebody else wrote, driven by its keys against a running broker.

It is installed from its registry into an environment of this test, with all it needs: so this is not in `make test`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import TopicPartition

from tests.support.admin import Admin
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.group_member import Member, await_shares, partitions_of
from tests.support.processes.odradek_process import OdradekBroker

pytestmark = pytest.mark.soak

KASKADE: Final = "kaskade==5.1.0"
SESSION: Final = Path(__file__).resolve().parents[2] / "support" / "loads" / "kaskade_session.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with kaskade."""
    directory = tmp_path_factory.mktemp("kaskade")
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    subprocess.run([directory / "bin" / "pip", "install", "--quiet", KASKADE], check=True)
    return directory / "bin" / "python"


def test_session(python: Path, tmp_path: Path) -> None:
    """Topics, partitions, configs and groups are seen; a topic is created, changed and deleted."""
    broker = OdradekBroker(tmp_path / "broker", {})
    broker.start()
    try:
        Admin(broker.bootstrap).create_topic("orders", 2)
        Confluent().produce(broker.bootstrap, "orders", [Message(key=b"%d" % i, value=b"%d" % i) for i in range(10)])
        with Member(broker.bootstrap, "billing", ["orders"]) as member:
            await_shares([member], partitions_of({"orders": 2}), [2])
            # kaskade finds the groups of a topic by their offsets.
            member.consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
            finished = subprocess.run(
                [python, SESSION, broker.bootstrap, "orders"], capture_output=True, text=True, check=False, timeout=120
            )
        assert finished.returncode == 0, finished.stderr[-3000:]
        seen = json.loads(finished.stdout)
    finally:
        broker.stop()
    assert [row[0] for row in seen["partitions"]] == ["0", "1"]
    assert sum(int(row[4]) for row in seen["partitions"]) == 10
    assert ["retention.ms", "-1"] in seen["configurations"]
    assert [row[:3] for row in seen["groups"]] == [["billing", f"{broker.bootstrap}/0", "stable"]]
    assert [row[0] for row in seen["group-members"]] == ["billing"]
    assert ["orders-made", "4", "1", "1"] in [row[:4] for row in seen["with more partitions"]]
    assert "orders-made" not in [row[0] for row in seen["at the end"]]
