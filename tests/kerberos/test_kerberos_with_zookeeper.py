"""Brokers of both kinds that authenticate to a ZooKeeper with Kerberos and own their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import SASL_JAAS_CONFIG, zookeeper_settings
from odradek.broker.security.sasl.zookeeper_login import zookeeper_sasl
from odradek.controller.tree.metadata_tree import ConnectionLoss
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from tests.support.async_test import async_test
from tests.support.broker import FAST_SETTINGS
from tests.support.kerberos.kdc import REALM, Kdc
from tests.support.kerberos.settings import BROKER, HOST, MODULE, keytab_jaas
from tests.support.processes.apache.apache import FRUGAL, ApacheBroker, ZooKeeper
from tests.support.processes.commands import run_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.kerberos

SERVER: Final = f"zookeeper/{HOST}"
CHROOT: Final = "/kerberos"
STRANGER: Final = "stranger/localhost"


@pytest.fixture(scope="module")
def zookeeper(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    directory = tmp_path_factory.mktemp("zookeeper")
    kdc.add(SERVER, STRANGER)
    jaas = directory / "jaas.conf"
    jaas.write_text(f"Server {{ {keytab_jaas(kdc.keytab('zookeeper', SERVER), SERVER)} }};")
    provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    server = ZooKeeper(directory, provider, (f"-Djava.security.auth.login.config={jaas}",))
    server.start()
    yield server
    server.stop()


class Brokers(NamedTuple):
    odradek: OdradekBroker
    apache: ApacheBroker


@pytest.fixture(scope="module")
def brokers(kdc: Kdc, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Odradek has id 0 and is the first controller."""
    directory = tmp_path_factory.mktemp("brokers")
    connect = f"{HOST}:{zookeeper.port}{CHROOT}"
    entry = keytab_jaas(kdc.keytab("owners", BROKER), BROKER)
    client_section = directory / "client.conf"
    client_section.write_text(f"Client {{ {entry} }};")
    settings = {**FAST_SETTINGS, "zookeeper.connect": connect, "zookeeper.set.acl": "true"}
    own = {**settings, "broker.id": "0", SASL_JAAS_CONFIG: entry}
    odradek = OdradekBroker(directory / "odradek", own, free_port())
    options = (
        *FRUGAL,
        f"-Djava.security.auth.login.config={client_section}",
        "-Dzookeeper.sasl.client.canonicalize.hostname=false",
    )
    apache = ApacheBroker(directory / "apache", connect, {**settings, "broker.id": "1"}, options)
    try:
        odradek.start()
        apache.start()
        yield Brokers(odradek, apache)
        apache.stop()
        odradek.stop()
        assert "Traceback" not in odradek.log_text()
    finally:
        odradek.close()
        apache.close()


def create_topic(broker: OdradekBroker | ApacheBroker, topic: str) -> None:
    """With a partition on each broker: each reads and writes what the other has written."""
    create = ("--create", "--topic", topic, "--replica-assignment", "0:1,1:0")
    run_command(broker.bootstrap, "topics", *create)
    for other in (0, 1):
        described = run_command(broker.bootstrap, "topics", "--describe", "--topic", topic)
        assert f"Leader: {other}" in described.stdout.decode()


def acls(client: KazooClient, path: str) -> set[tuple[str, str, int]]:
    return {(acl.id.scheme, acl.id.id, acl.perms) for acl in client.get_acls(CHROOT + path)[0]}


def test_nodes_belong_to_the_principal_that_both_kinds_have(brokers: Brokers, zookeeper: ZooKeeper) -> None:
    create_topic(brokers.odradek, "of-odradek")
    create_topic(brokers.apache, "of-apache")
    client = KazooClient(zookeeper.address)
    client.start()
    try:
        made_by_odradek = acls(client, "/brokers/ids/0")
        assert made_by_odradek == acls(client, "/brokers/ids/1"), "made by Apache Kafka"
        [owner] = [name for scheme, name, _ in made_by_odradek if scheme == "sasl"]
        assert owner.startswith("kafka")
        for path in ("/brokers/topics/of-odradek", "/brokers/topics/of-apache", "/controller_epoch"):
            assert acls(client, path) == made_by_odradek, path
        for path in ("/config/users", "/config/brokers"):
            with pytest.raises(NoAuthError):
                client.get(CHROOT + path)
    finally:
        client.stop()
        client.close()


def test_sessions_are_taken_up_again_after_a_restart_of_zookeeper(brokers: Brokers, zookeeper: ZooKeeper) -> None:
    lost = brokers.odradek.log_text().count("Lost the connection to ZooKeeper")
    zookeeper.stop()
    eventually(
        lambda: brokers.odradek.log_text().count("Lost the connection to ZooKeeper"), accept=lambda count: count > lost
    )
    zookeeper.start()
    create_topic(brokers.odradek, "after-the-restart")


def refusal_settings(zookeeper: ZooKeeper, entry: str) -> BrokerConfig:
    return BrokerConfig({"zookeeper.connect": f"{HOST}:{zookeeper.port}", SASL_JAAS_CONFIG: entry})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("serviceName=nobody", "Server nobody/localhost@EXAMPLE.COM not found in Kerberos database"),
        (f'principal="nobody@{REALM}"', "no ticket for nobody@EXAMPLE.COM by the keytab"),
    ],
)
@async_test
async def test_why_it_failed_is_in_the_log(
    kdc: Kdc, zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture, options: str, reason: str
) -> None:
    keytab = kdc.keytab("stranger", STRANGER)
    named = options if "principal" in options else f'{options} principal="{STRANGER}@{REALM}"'
    config = refusal_settings(zookeeper, f'{MODULE} required useKeyTab=true keyTab="{keytab}" {named};')
    with pytest.raises(ConnectionLoss, match="authentication failed"):
        await ZooKeeperTree.open(zookeeper_settings(config, zookeeper_sasl(config)))
    [line] = [text for text in caplog.messages if text.startswith("SASL authentication to ZooKeeper at localhost")]
    assert reason in line
