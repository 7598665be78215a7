"""A cluster of Odradek and Apache Kafka whose brokers authenticate to each other with Kerberos."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.kerberos.kdc import Kdc
from tests.support.kerberos.settings import BROKER, HOST, keytab_jaas, listener_settings
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import run_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.kerberos

SESSION_MS: Final = 2000
RECORDS: Final = 100
AUTHENTICATED: Final = "authenticationID=kafka/localhost@EXAMPLE.COM"


class Cluster(NamedTuple):
    bootstrap: str
    brokers: list[OdradekBroker | ApacheBroker]


@pytest.fixture(scope="module")
def cluster(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Odradek with ids 0 and 1, Apache Kafka with id 2; clients have to be brokers."""
    directory = tmp_path_factory.mktemp("cluster")
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    chroot = zookeeper.new_chroot()
    jaas = keytab_jaas(kdc.keytab("brokers", BROKER), BROKER)
    made: list[OdradekBroker | ApacheBroker] = []
    ports = [(free_port(), free_port()) for _ in range(3)]
    for broker_id, (port, sasl_port) in enumerate(ports):
        settings = listener_settings(port, sasl_port, jaas, between_brokers=True) | {
            "broker.id": str(broker_id),
            "zookeeper.connect": chroot,
            "default.replication.factor": "3",
            "min.insync.replicas": "3",
            "offsets.topic.replication.factor": "3",
            "listener.name.auth.connections.max.reauth.ms": str(SESSION_MS),
        }
        path = directory / str(broker_id)
        made.append(
            ApacheBroker(path, chroot, settings, port=port) if broker_id == 2 else OdradekBroker(path, settings, port)
        )
    try:
        for broker in made:
            broker.start()
        yield Cluster(f"{HOST}:{ports[0][1]}", made)
        for broker in reversed(made):
            broker.stop()
        for broker in made[:2]:
            assert "Traceback" not in broker.log_text()
    finally:
        for broker in made:
            broker.close()
        zookeeper.stop()


def test_replicas_follow_over_kerberos_and_beyond_the_end_of_their_sessions(
    cluster: Cluster, tools: Tools, properties_of: Callable[[str], str], tmp_path: Path
) -> None:
    config = properties_of("alice")
    create = ("--create", "--topic", "followed", "--partitions", "3", "--replication-factor", "3")
    run_command(cluster.bootstrap, "topics", *create, "--command-config", config)
    for _ in range(2):
        lines = b"".join(b"%d\n" % number for number in range(RECORDS))
        run_command(
            cluster.bootstrap,
            "produce",
            "--topic",
            "followed",
            "--acks",
            "all",
            "--command-config",
            config,
            stdin=lines,
        )
        # A broker that cannot authenticate again within the session is out of sync afterwards.
        known = [broker.log_text().count(AUTHENTICATED) for broker in cluster.brokers]
        eventually(
            lambda known=known: all(
                broker.log_text().count(AUTHENTICATED) >= before + 2
                for broker, before in zip(cluster.brokers, known, strict=True)
            ),
            timeout_s=60,
        )
    described = tools.run(
        "topics",
        "--bootstrap-server",
        cluster.bootstrap,
        "--command-config",
        config,
        "--describe",
        "--topic",
        "followed",
    )
    assert len([line for line in described.lines if "Isr: " in line]) == 3
    for line in described.lines[1:]:
        assert {int(one) for one in line.partition("Isr: ")[2].split("\t")[0].split(",")} == {0, 1, 2}, line
    which = ("--topic", "followed", "--from-beginning", "--max-messages", str(2 * RECORDS))
    at = ("--bootstrap-server", cluster.bootstrap, "--consumer.config", config)
    assert len(tools.run("console-consumer", *at, *which).lines) == 2 * RECORDS
    log = "".join(broker.log_text() for broker in cluster.brokers[:2])
    assert "Failed authentication" not in log
    assert "Failed re-authentication" not in log
