"""A cluster that is stopped together with its ZooKeeper: no broker waits for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

LIMIT_S = 10.0
"""The README promises 3 s, and on a machine that has nothing else to do it is 1.9 s. Brokers that wait for what will
not come back take over 20 s.
"""

BROKERS = (1, 2, 3)
PARTITIONS = 12


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def brokers(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[OdradekBroker]]:
    connect = zookeeper.new_chroot()
    made = []
    for broker_id in BROKERS:
        settings = {**FAST_SETTINGS, "zookeeper.connect": connect, "broker.id": str(broker_id)}
        made.append(OdradekBroker(tmp_path / str(broker_id), settings))
    for broker in made:
        broker.start()
    assignment = [
        {"partition_index": index, "broker_ids": [BROKERS[(index + step) % 3] for step in range(3)]}
        for index in range(PARTITIONS)
    ]
    topic = {"name": "t", "num_partitions": -1, "replication_factor": -1, "assignments": assignment}
    with RawClient(made[0].host, made[0].port) as client:
        (created,) = client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5).topics  # type: ignore[attr-defined]
    assert created.error_code == 0
    yield made
    for broker in made:
        broker.close()


@pytest.mark.parametrize(
    "first",
    [
        "zookeeper",
        pytest.param("brokers", marks=pytest.mark.soak),
        pytest.param("zookeeper with a bang", marks=pytest.mark.soak),
    ],
)
def test_brokers_that_are_stopped_with_their_zookeeper_do_not_wait_for_it(
    first: str, zookeeper: ZooKeeper, brokers: list[OdradekBroker]
) -> None:
    if first != "brokers":
        os.kill(zookeeper.pid, signal.SIGTERM if first == "zookeeper" else signal.SIGKILL)
    began = time.monotonic()
    for broker, number in zip(brokers, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT), strict=True):
        os.kill(broker.pid, number)
    if first == "brokers":
        os.kill(zookeeper.pid, signal.SIGTERM)  # in the midst of the controlled shutdown
    assert [broker.wait_for_end() for broker in brokers] == [0, 0, 0]
    assert time.monotonic() - began < LIMIT_S
    for broker in brokers:
        assert (broker.log_dir / ".kafka_cleanshutdown").exists()
        assert "Traceback" not in broker.log_text()
