"""`odradek serve --brokers 3`: three processes and their metadata service under one command."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.admin import Admin
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually

START_TIMEOUT_S = 30
RECORDS = 20


class ServedCluster:
    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "odradek", "serve", "--brokers", "3", "--port", "0", "--data", "data"]
        environment = {"PYTHONPATH": str(REPOSITORY / "src")}
        self.process = ManagedProcess(command, directory / "cluster.log", cwd=directory, env=environment)

    def start(self) -> str:
        """The bootstrap servers."""
        self.process.start()
        return str(self.process.wait_for_line(r"^  bootstrap servers  (\S+)$", START_TIMEOUT_S)[1])

    def brokers(self) -> list[psutil.Process]:
        return [child for child in psutil.Process(self.process.pid).children() if "serve" in child.cmdline()]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ServedCluster]:
    cluster = ServedCluster(tmp_path)
    yield cluster
    if cluster.process.is_running:
        children = cluster.brokers()
        cluster.process.kill()
        for child in children:
            child.kill()


def test_a_cluster_starts_serves_stops_and_starts_again(cluster: ServedCluster) -> None:
    client = Confluent()
    sent = [Message(key=b"%d" % number, value=b"v") for number in range(RECORDS)]
    bootstrap = cluster.start()
    assert len(bootstrap.split(",")) == 3
    topic = Admin(bootstrap).create_topic("replicated", partitions=3, replicas=3)
    client.produce(bootstrap, topic, sent)
    assert cluster.process.terminate() == 0
    log = cluster.process.log_text()
    assert "Traceback" not in log
    assert {int(number) for number in re.findall(r"^\[broker (\d)\] ", log, re.MULTILINE)} == {0, 1, 2}
    untagged = [line for line in log.splitlines() if not line.startswith(("[broker ", "[20", "  ", "Odradek "))]
    assert untagged == []

    bootstrap = cluster.start()
    received = client.consume(bootstrap, topic, RECORDS)
    assert [record.key for record in received] == [message.key for message in sent]
    assert cluster.process.terminate() == 0


def test_a_broker_that_is_killed_ends_the_cluster(cluster: ServedCluster) -> None:
    cluster.start()
    victim, *others = cluster.brokers()
    os.kill(victim.pid, signal.SIGKILL)
    assert cluster.process.wait(30) == 1
    assert "has ended with signal 9; the cluster stops" in cluster.process.log_text()
    eventually(lambda: [each for each in others if each.is_running()], accept=lambda alive: not alive)


def test_brokers_do_not_outlive_a_supervisor_that_is_killed(cluster: ServedCluster) -> None:
    cluster.start()
    brokers = cluster.brokers()
    assert len(brokers) == 3
    cluster.process.kill()
    eventually(lambda: [each for each in brokers if each.is_running()], accept=lambda alive: not alive, timeout_s=30)
