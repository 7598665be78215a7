"""A cluster of Odradek and Apache Kafka whose brokers authenticate to each other.

Apache's tool has written their credentials into ZooKeeper before the first start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from odradek.timer.clock import SystemClock
from tests.conformance.security.conftest import Certificates
from tests.support.disks.open_descriptors import open_targets
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import run_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import CANARY, client_properties, listener_settings
from tests.support.waiting import eventually

PASSWORD = f"{CANARY}-between-brokers"
MECHANISM = "SCRAM-SHA-512"
SESSION_MS = 2000
Brokers = list[OdradekBroker | ApacheBroker]


class SaslCluster(NamedTuple):
    """The address of Odradek, and what a client of it needs besides its password."""

    address: str
    odradek_pid: int
    apache_port: int
    protocol: str
    ca: Path

    def librdkafka(self) -> dict[str, str]:
        tls = {"ssl.ca.location": str(self.ca)} if self.protocol == "SASL_SSL" else {}
        return {
            "bootstrap.servers": self.address,
            "security.protocol": self.protocol,
            "sasl.mechanism": MECHANISM,
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
            **tls,
        }

    def links(self) -> set[str]:
        """The sockets of Odradek's connections to the SASL listener of Apache Kafka."""
        fields = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        links = {f"socket:[{line[9]}]" for line in fields if line[2].endswith(f":{self.apache_port:04X}")}
        return links & set(open_targets(self.odradek_pid))

    def properties(self, path: Path, password: str) -> str:
        """The path of a file for `--command-config`."""
        text = client_properties(MECHANISM, "admin", password).replace("=SASL_PLAINTEXT", f"={self.protocol}")
        if self.protocol == "SASL_SSL":
            text += f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        path.write_text(text)
        return str(path)


def settings_of(broker_id: int, port: int, sasl_port: int, protocol: str) -> dict[str, str]:
    settings = listener_settings(port, sasl_port, between_brokers=MECHANISM)
    name = "listener.name.auth.scram-sha-512.sasl.jaas.config"
    module = settings[name].partition(" ")[0]
    return settings | {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,AUTH:{protocol}",
        "broker.id": str(broker_id),
        name: f'{module} required username="admin" password="{PASSWORD}";',
        "listener.name.auth.connections.max.reauth.ms": str(SESSION_MS),
        "default.replication.factor": "2",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "2",
    }


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def cluster(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    zookeeper: ZooKeeper,
    tools: Tools,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SaslCluster]:
    """Odradek with id 0, which starts first, and Apache Kafka with id 1."""
    protocol: str = request.param
    stores = certificates.broker_settings() if protocol == "SASL_SSL" else {}
    tmp_path = tmp_path_factory.mktemp("cluster")
    chroot = zookeeper.new_chroot()
    kazoo = KazooClient(zookeeper.address)
    kazoo.start()
    kazoo.ensure_path(chroot.removeprefix(zookeeper.address))  # the tool does not make it
    kazoo.stop()
    kazoo.close()
    which = ("--entity-type", "users", "--entity-name", "admin")
    tools.run("configs", "--zookeeper", chroot, "--alter", *which, "--add-config", f"{MECHANISM}=[password={PASSWORD}]")
    ports = [(free_port(), free_port()) for _ in range(2)]
    odradek = OdradekBroker(
        tmp_path / "odradek", settings_of(0, *ports[0], protocol) | stores | {"zookeeper.connect": chroot}, ports[0][0]
    )
    apache = ApacheBroker(tmp_path / "apache", chroot, settings_of(1, *ports[1], protocol) | stores, port=ports[1][0])
    made: Brokers = [odradek, apache]
    try:
        for broker in made:
            broker.start()
        yield SaslCluster(f"127.0.0.1:{ports[0][1]}", odradek.pid, ports[1][1], protocol, certificates.ca)
        for broker in reversed(made):
            broker.stop()
        log = odradek.log_text()
        assert CANARY not in log
        assert "Traceback" not in log
    finally:
        for broker in made:
            broker.close()


def test_replicas_follow_over_sasl_and_beyond_the_end_of_their_sessions(
    cluster: SaslCluster, unique: Callable[[str], str], tmp_path: Path
) -> None:
    settings, address = cluster.librdkafka(), cluster.address
    topic = unique("sasl")
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(topic, 4, 2)])[topic].result(20)
    producer = confluent_kafka.Producer(settings | {"acks": "all"})
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    links: set[str] = set()
    produced, clock = 0, SystemClock()
    began_ms = clock.monotonic_ms()
    while clock.monotonic_ms() - began_ms < 3 * SESSION_MS:
        producer.produce(topic, str(produced).encode(), partition=produced % 4, on_delivery=delivered)
        assert producer.flush(20) == 0
        produced += 1
        links = links or cluster.links()  # from the first record on, which both brokers have
    assert not errors
    assert links <= cluster.links(), "a broker authenticates again on the same connection"

    def in_sync() -> set[int]:
        partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
        return {len(partition.isrs) for partition in partitions}

    eventually(in_sync, accept=lambda sizes: sizes == {2}, timeout_s=20)
    config = cluster.properties(tmp_path / "client.properties", PASSWORD)
    listed = run_command(address, "topics", "--command-config", config, "--list")
    assert topic in listed.stdout.decode().split()
    consumed = run_command(
        address, "consume", "--command-config", config, "--topic", topic, "--from-beginning",
        "--max-messages", str(produced),
    )  # fmt: skip
    assert {int(line) for line in consumed.stdout.split()} == set(range(produced))


def test_a_command_with_the_wrong_password_says_so_and_not_the_password(cluster: SaslCluster, tmp_path: Path) -> None:
    config = cluster.properties(tmp_path / "client.properties", f"{CANARY}-wrong")
    failed = run_command(cluster.address, "topics", "--command-config", config, "--list", status=1)
    assert f"invalid credentials with SASL mechanism {MECHANISM}" in failed.stderr
    assert CANARY not in failed.stderr
