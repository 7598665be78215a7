"""kill -9 while compaction and retention run under load, a few times; `tests/soak` does it two hundred times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compaction.keyed_load import READ_TIMEOUT_S
from tests.support.compaction.killed_compaction import SETTINGS, Killing
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually

KILLS = 6


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path, SETTINGS)
    process.start()
    yield process
    process.close()


def test_compaction_and_retention_lose_nothing_and_bring_nothing_back(broker: OdradekBroker) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    killing = Killing(broker, seed)
    for number in range(KILLS):
        killing.kill_once(number)
    eventually(lambda: "Cleaned log compacted-0" in broker.log_text(), timeout_s=READ_TIMEOUT_S)
    killing.finish()
    broker.stop_cleanly()
