"""A cluster of Odradek and Apache Kafka whose brokers authenticate to each other with signed tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.config.keys.sasl import LOGIN, VALIDATOR
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from tests.support.jwt import jwks, rsa_jwk, rsa_key, signed
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.commands import run_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

PREFIX = "listener.name.auth.oauthbearer"
Ports = tuple[int, int]


def settings_of(broker_id: int, ports: Ports, directory: Path) -> dict[str, str]:
    return {
        "broker.id": str(broker_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},AUTH://127.0.0.1:{ports[1]}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
        "inter.broker.listener.name": "AUTH",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{PREFIX}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        f"{PREFIX}.sasl.server.callback.handler.class": VALIDATOR,
        f"{PREFIX}.sasl.login.callback.handler.class": LOGIN,
        "sasl.oauthbearer.token.endpoint.url": f"file:{directory}/token",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{directory}/jwks.json",
    }


@pytest.fixture
def cluster(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[tuple[Ports, Ports]]:
    """The ports of Apache Kafka with id 0 and of Odradek with id 1."""
    now = int(time.time())
    claims = {"sub": "broker", "iat": now, "exp": now + 3600}
    (tmp_path / "jwks.json").write_bytes(jwks(rsa_jwk(rsa_key(), kid="1", alg="RS256", use="sig")))
    (tmp_path / "token").write_text(signed(claims, rsa_key(), kid="1"))
    chroot = zookeeper.new_chroot()
    first, second = (free_port(), free_port()), (free_port(), free_port())
    apache = ApacheBroker(tmp_path / "apache", chroot, settings_of(0, first, tmp_path), port=first[0])
    settings = settings_of(1, second, tmp_path) | {"zookeeper.connect": chroot}
    odradek = OdradekBroker(tmp_path / "odradek", settings, second[0])
    try:
        apache.start()
        odradek.start()
        yield first, second
        assert "Traceback" not in odradek.log_text()
    finally:
        odradek.close()
        apache.close()


def test_replicas_follow_with_tokens_and_a_command_has_one(cluster: tuple[Ports, Ports], tmp_path: Path) -> None:
    apache, odradek = cluster
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{apache[0]}"})
    admin.create_topics([NewTopic("t", 2, replica_assignment=[[0, 1], [1, 0]])])["t"].result(20)

    def in_sync() -> list[list[int]]:
        partitions = admin.list_topics("t", timeout=10).topics["t"].partitions.values()
        return [sorted(partition.isrs) for partition in partitions]

    for port in (apache[0], odradek[0]):
        for partition in ("0", "1"):
            command = ("produce", "-t", "t", "-p", partition, "-X", "acks=all")
            run_command(f"127.0.0.1:{port}", *command, stdin=b"x\n")
    eventually(in_sync, accept=lambda isrs: isrs == [[0, 1], [0, 1]], timeout_s=20)
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={LOGIN_MODULE} required;\nsasl.login.callback.handler.class={LOGIN}\n"
        f"sasl.oauthbearer.token.endpoint.url=file:{tmp_path}/token\n"
    )
    for port in (apache[1], odradek[1]):
        listed = run_command(f"127.0.0.1:{port}", "topics", "--command-config", str(config), "--list")
        assert "t" in listed.stdout.decode().split()
