"""A log directory goes back and forth between Odradek and Apache Kafka 3.9, after clean stops and after kills.

The metadata goes along by `odradek metadata copy`. Each broker serves every record of both, continues the idempotent
producer and the committed offsets of the other, and appends. Longer relays are in `tests/soak`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.loads.interchange import OTHER, Ending, Relay, Target, run_leg
from tests.support.loads.ledger import Ledger
from tests.support.processes.apache.apache import ZooKeeper

RELAYS: dict[Target, Sequence[Ending]] = {
    "odradek": ("stop", "stop", "kill", "kill", "stop"),
    "apache": ("stop", "stop", "kill", "stop"),
}


@pytest.mark.parametrize("first", RELAYS)
def test_relay(first: Target, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    relay, ledger = Relay(tmp_path, zookeeper), Ledger()
    target, before = first, "stop"
    try:
        for ending in RELAYS[first]:
            run_leg(relay, ledger, target, before, ending)
            target, before = OTHER[target], ending
    finally:
        relay.close()
