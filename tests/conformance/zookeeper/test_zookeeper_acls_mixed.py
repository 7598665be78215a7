"""`zookeeper.set.acl=true` in clusters of an Odradek and an Apache broker that share a ZooKeeper user (SASL): who owns
each node, what a stranger can do, and that each kind of broker works with the nodes of the other.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import OPEN_ACL_UNSAFE

from odradek.protocol.api import ApiKey
from tests.conformance.zookeeper.test_zookeeper_security import JAAS, PASSWORD, SASL
from tests.support.admin import Admin
from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.apache import FRUGAL, ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

CLIENT_JAAS = f"""\
Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="{PASSWORD}"; }};
"""
OWNER = ("sasl", "kafka", 31)
READER = ("world", "anyone", 1)
ANYONE = ("world", "anyone", 31)
SECRET = ("/config/users", "/config/brokers", "/delegation_token/tokens")

Broker = ApacheBroker | OdradekBroker


def expected_acl(path: str) -> set[tuple[str, str, int]]:
    """What ZkData.defaultAcls of Apache Kafka gives to a node."""
    if path == "/consumers":
        return {ANYONE}
    return {OWNER} if path.startswith(SECRET) else {OWNER, READER}


def authenticating_zookeeper(directory: Path) -> ZooKeeper:
    (directory / "jaas.conf").write_text(JAAS)
    provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    return ZooKeeper(directory, provider, (f"-Djava.security.auth.login.config={directory / 'jaas.conf'}",))


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = authenticating_zookeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


def new_broker(directory: Path, kind: str, broker_id: int, connect: str, *, sets_acl: bool = True) -> Broker:
    settings = {
        **FAST_SETTINGS,
        "broker.id": str(broker_id),
        "zookeeper.connect": connect,
        "zookeeper.set.acl": str(sets_acl).lower(),
    }
    if kind == "odradek":
        sasl = {"odradek.zookeeper.sasl.username": "kafka", "odradek.zookeeper.sasl.password": PASSWORD}
        return OdradekBroker(directory, {**settings, **sasl}, free_port())
    directory.mkdir(parents=True, exist_ok=True)
    jaas = directory / "client.conf"
    jaas.write_text(CLIENT_JAAS)
    return ApacheBroker(directory, connect, settings, (*FRUGAL, f"-Djava.security.auth.login.config={jaas}"))


def call(broker: Broker, api: ApiKey, version: int, **fields: object) -> Any:
    with closing(RawClient(broker.host, broker.port)) as client:
        return client.call(build(api, **fields), version)


def alter(broker: Broker, broker_id: int) -> None:
    """Changes that this broker itself writes: a user's quota and a config of its own."""
    quota = {
        "entity": [{"entity_type": "user", "entity_name": f"user-{broker_id}"}],
        "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}],
    }
    [entry] = call(broker, ApiKey.ALTER_CLIENT_QUOTAS, 0, entries=[quota], validate_only=False).entries
    assert entry.error_code == 0, entry
    config = {"name": "log.cleaner.backoff.ms", "config_operation": 0, "value": f"1500{broker_id}"}
    resource = {"resource_type": 4, "resource_name": str(broker_id), "configs": [config]}
    [response] = call(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource]).responses
    assert response.error_code == 0, response


def users_with_quotas(broker: Broker) -> set[str]:
    component = [{"entity_type": "user", "match_type": 2, "match": None}]
    described = call(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, components=component, strict=True)
    return {part.entity_name for entry in described.entries for part in entry.entity}


def allocate_producer_id(broker: Broker) -> None:
    found = eventually(
        lambda: call(broker, ApiKey.INIT_PRODUCER_ID, 1, transactional_id=None, transaction_timeout_ms=1000),
        accept=lambda answer: answer.error_code == 0,
    )
    assert found.producer_id >= 0


def acls(zookeeper: KazooClient, path: str = "/") -> dict[str, set[tuple[str, str, int]]]:
    """The ACL of each node by its path."""
    try:
        found, _ = zookeeper.get_acls(path)
        names = zookeeper.get_children(path)
    except NoNodeError:  # deleted meanwhile, as notifications are
        return {}
    nodes = {path: {(acl.id.scheme, acl.id.id, acl.perms) for acl in found}}
    for name in names:
        nodes |= acls(zookeeper, f"{path.rstrip('/')}/{name}")
    return nodes


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(stack: ExitStack, connect: str, **options: object) -> KazooClient:
    client = KazooClient(connect, **options)
    client.start()
    stack.callback(client.close)
    stack.callback(client.stop)
    return client


@pytest.mark.parametrize("kinds", [("odradek", "apache"), ("apache", "odradek")], ids="-".join)
def test_each_kind_owns_and_uses_all_nodes(
    zookeeper: ZooKeeper, tmp_path: Path, stack: ExitStack, kinds: tuple[str, str]
) -> None:
    """The first broker creates the base nodes and is the controller."""
    connect = zookeeper.new_chroot()
    brokers = [new_broker(tmp_path / kind, kind, number, connect) for number, kind in enumerate(kinds)]
    for broker in brokers:
        stack.callback(broker.close)
        broker.start()
    admin = Admin(brokers[1].bootstrap)
    for topic in ("kept", "gone"):
        admin.create_topic(topic, 2, {"retention.ms": "1000"}, replicas=2)
    admin.delete_topic("gone")
    for number, broker in enumerate(brokers):
        alter(broker, number)
        allocate_producer_id(broker)
    for broker in brokers:
        eventually(lambda broker=broker: users_with_quotas(broker), accept=lambda users: users == {"user-0", "user-1"})
    owner = connected(stack, connect, sasl_options=SASL)
    found = acls(owner)
    assert {path: acl for path, acl in found.items() if acl != expected_acl(path)} == {}
    assert {"/brokers/ids/1", "/brokers/topics/kept/partitions/1/state", "/config/users/user-1"} <= found.keys()
    check_stranger(connected(stack, connect), found.keys())
    logs = "".join(broker.log_text() for broker in brokers)
    assert PASSWORD not in logs
    assert "NoAuth" not in logs


def check_stranger(stranger: KazooClient, paths: Iterable[str]) -> None:
    """Someone without the user's password changes nothing, and reads what holds no secrets."""
    for path in paths:
        secret = path.startswith(SECRET)
        if secret:
            with pytest.raises(NoAuthError):
                stranger.get(path)
        else:
            with suppress(NoNodeError):  # deleted meanwhile, as notifications are
                stranger.get(path)
        if path == "/consumers":
            continue
        for change in (
            lambda path=path: stranger.set(path, b"{}"),
            lambda path=path: stranger.create(f"{path.rstrip('/')}/stranger"),
            lambda path=path: stranger.set_acls(path, OPEN_ACL_UNSAFE),
        ):
            with pytest.raises((NoAuthError, NoNodeError)) as refused:
                change()
            if refused.type is NoNodeError:
                assert stranger.exists(path) is None, path


def test_the_tool_of_apache_secures_an_open_cluster(zookeeper: ZooKeeper, tmp_path: Path, stack: ExitStack) -> None:
    """A cluster that ran without ACLs: the brokers restart with `zookeeper.set.acl=true`, then the tool runs."""
    connect = zookeeper.new_chroot()
    broker = new_broker(tmp_path / "broker", "odradek", 0, connect, sets_acl=False)
    stack.callback(broker.close)
    broker.start()
    Admin(broker.bootstrap).create_topic("kept", 2)
    broker.stop()
    broker = new_broker(tmp_path / "broker", "odradek", 0, connect)
    stack.callback(broker.close)
    broker.start()
    jaas = tmp_path / "client.conf"
    jaas.write_text(CLIENT_JAAS)
    tool = java_command(
        "kafka.admin.ZkSecurityMigrator",
        *("--zookeeper.acl", "secure", "--zookeeper.connect", connect),
        options=(*FRUGAL, f"-Djava.security.auth.login.config={jaas}"),
    )
    subprocess.run(tool, check=True, capture_output=True, timeout=60)
    found = acls(connected(stack, connect, sasl_options=SASL))
    assert {path: acl for path, acl in found.items() if acl != expected_acl(path) and path != "/consumers"} == {}
    Admin(broker.bootstrap).create_topic("afterwards", 2)
    check_stranger(connected(stack, connect), found.keys())
