"""Recovery in the worker processes of a running broker: signals and deaths of workers during it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.disks.logs import batch
from tests.support.processes.odradek_process import STARTED, OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

RECORDS = 400_000
TIMEOUT_S = 20


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[OdradekBroker]:
    """A killed broker with a log of many small batches, whose recovery takes about half a second."""
    broker = OdradekBroker(tmp_path)
    broker.start()
    Admin(broker.bootstrap).create_topic("topic", 1)
    broker.kill()
    one = bytes(batch(b"v"))
    rest = one[8:]
    with (broker.log_dir / "topic-0" / "00000000000000000000.log").open("wb") as file:
        for offset in range(RECORDS):
            file.write(offset.to_bytes(8, "big") + rest)
        file.write(b"torn")
    yield broker
    broker.close()


def log_end_offset(broker: OdradekBroker) -> int:
    with RawClient(broker.host, broker.port) as client:
        topics = [{"name": "topic", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        answer = client.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=topics), 2)
    return int(answer.topics[0].partitions[0].offset)  # type: ignore[attr-defined]


def launch_and_wait_for_recovery(broker: OdradekBroker) -> None:
    broker.launch()
    broker.wait_for_line("Recovering unflushed segment 0. 0/1 recovered for topic-0")


def test_sigterm_during_recovery_stops_the_start_and_harms_nothing(killed: OdradekBroker) -> None:
    launch_and_wait_for_recovery(killed)
    killed.stop()
    assert STARTED not in killed.log_text()
    assert not (killed.log_dir / ".kafka_cleanshutdown").exists()
    killed.start()
    assert log_end_offset(killed) == RECORDS
    assert (killed.log_dir / "topic-0" / "00000000000000000000.log").stat().st_size == RECORDS * len(batch(b"v"))


def test_death_of_a_worker_refuses_the_start(killed: OdradekBroker) -> None:
    launch_and_wait_for_recovery(killed)
    [worker] = psutil.Process(killed.pid).children()
    os.kill(worker.pid, signal.SIGKILL)
    assert killed.wait_for_end() == 1
    assert "topic-0 cannot be loaded: The worker process was killed or has died" in killed.log_text()
    killed.start()
    assert log_end_offset(killed) == RECORDS
