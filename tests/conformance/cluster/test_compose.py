"""The `cluster` profile of docker-compose.yml, without containers: the brokers get exactly its commands and settings.

Host names become 127.0.0.1 and ports become free ones; nothing else is changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.admin import Admin
from tests.support.clusters.cluster import described_by
from tests.support.clusters.cluster_tree import ClusterTree
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import STARTED
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually

START_TIMEOUT_S = 30
DATA = "/var/lib/odradek/data"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    return {name: service for name, service in compose["services"].items() if service["profiles"] == ["cluster"]}


class Translation:
    """From addresses among containers to addresses here: one free port for each. `zookeeper_connect`: with a chroot."""

    def __init__(self, zookeeper_connect: str) -> None:
        self.zookeeper_connect = zookeeper_connect
        self._ports: dict[str, int] = {}

    def environment(self, service: str, environment: dict[str, str]) -> dict[str, str]:
        return {key: self._setting(service, key, value) for key, value in environment.items()}

    def _setting(self, service: str, key: str, value: str) -> str:
        if key == "KAFKA_ZOOKEEPER_CONNECT":
            assert value == "zookeeper:2181"
            return self.zookeeper_connect
        return re.sub(r"://([\w.-]+):(\d+)", lambda found: f"://{self.address(service, found[2])}", value)

    def address(self, service: str, port: str) -> str:
        free = self._ports.setdefault(f"{service}:{port}", free_port())
        return f"127.0.0.1:{free}"


@pytest.fixture
def translation(zookeeper: ZooKeeper) -> Translation:
    return Translation(zookeeper.new_chroot())


@pytest.fixture
def outer_addresses(services: dict[str, Any], translation: Translation, tmp_path: Path) -> Iterator[list[str]]:
    """The brokers run; where clients outside of the containers reach them."""
    processes = []
    addresses = []
    try:
        for name, service in services.items():
            if name == "zookeeper":
                continue
            command = [str(tmp_path / name) if word == DATA else word for word in service["command"]]
            process = ManagedProcess(
                [sys.executable, "-m", "odradek", *command],
                tmp_path / f"{name}.log",
                cwd=tmp_path,
                env={**translation.environment(name, service["environment"]), "PYTHONPATH": str(REPOSITORY / "src")},
            )
            process.start()
            processes.append(process)
            published = service["ports"][0].split(":")
            assert published[1] == published[2], "a client is told the port of the container"
            addresses.append(translation.address(name, published[2]))
        for process in processes:
            process.wait_for_line(STARTED, START_TIMEOUT_S)
        yield addresses
    finally:
        for process in processes:
            if process.is_running:
                process.kill()


def is_told_of(address: str, ids: set[int]) -> bool:
    """Whether clients learn there of these brokers, and who the controller is."""
    host, _, port = address.partition(":")
    view = described_by(host, int(port))
    return view.brokers == ids and view.controller in ids


def test_three_brokers_form_a_cluster(
    services: dict[str, Any], outer_addresses: list[str], translation: Translation
) -> None:
    tree = ClusterTree(translation.zookeeper_connect)
    try:
        brokers = [service for name, service in services.items() if name != "zookeeper"]
        ids = {int(service["environment"]["KAFKA_BROKER_ID"]) for service in brokers}
        eventually(tree.broker_ids, accept=lambda found: found == ids, timeout_s=START_TIMEOUT_S)
        bootstrap = ",".join(outer_addresses)
        for address in outer_addresses:  # a client that asks too early takes its time to ask again
            eventually(lambda address=address: is_told_of(address, ids), timeout_s=START_TIMEOUT_S)  # type: ignore[misc]
        topic = Admin(bootstrap).create_topic("everywhere", 3, replicas=-1)
        eventually(lambda: tree.is_complete(topic), timeout_s=START_TIMEOUT_S)
        assert all(set(state.replicas) == ids for state in tree.partitions(topic).values())
        messages = [Message(key=None, value=b"%d" % i) for i in range(10)]
        assert Confluent().produce(bootstrap, topic, messages) == list(range(10))
        assert len(Confluent().consume(bootstrap, topic, 10)) == 10
    finally:
        tree.close()
