"""An Odradek and an Apache Kafka broker with SASL_SSL alone, ACLs, and a ZooKeeper whose nodes only brokers write.

Each writes ACLs, users of SCRAM, delegation tokens, quotas and encrypted configs. Both use them, also when each broker
has become one of the other kind.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.conformance.daemon.canaries import forms_of
from tests.conformance.security.conftest import Certificates
from tests.conformance.zookeeper.test_zookeeper_acls_mixed import (
    CLIENT_JAAS,
    acls,
    authenticating_zookeeper,
    check_stranger,
    connected,
    expected_acl,
)
from tests.conformance.zookeeper.test_zookeeper_security import PASSWORD as ZOOKEEPER_PASSWORD
from tests.conformance.zookeeper.test_zookeeper_security import SASL
from tests.support.certificates import PASSWORD as STORE_PASSWORD
from tests.support.certificates import Identity
from tests.support.clusters.cluster import SETTINGS
from tests.support.processes.apache.apache import FRUGAL, ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import STARTED, OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import CANARY, PASSWORDS, client_jaas, listener_settings
from tests.support.tokens import create_token, describe_tokens, token_log_in
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import log_in

pytestmark = pytest.mark.oracle

Kind = Literal["odradek", "apache"]
HOST: Final = "127.0.0.1"
MECHANISM: Final = "SCRAM-SHA-512"
BROKERS: Final = (0, 1)
TIMEOUT_S: Final = 40
SHA_512: Final = 2
ITERATIONS: Final = 4096
SALT: Final = b"sixteen-or-more-bytes"
KEY_STORE: Final = "listener.name.auth.ssl.keystore."
JAAS_CONFIG: Final = "listener.name.auth.scram-sha-256.sasl.jaas.config"
JAAS: Final = client_jaas("SCRAM-SHA-256", "admin")
KEY_STORE_PASSWORD: Final = f"{CANARY}-of-the-key-store"
NONE: Final = ErrorCode.NONE


class Member(NamedTuple):
    """A user of SCRAM with the rights of the topic of the same name, a quota, and a token."""

    name: str
    token_id: str
    hmac: bytes

    @property
    def password(self) -> str:
        return password_of(self.name)


def password_of(user: str) -> str:
    return f"{CANARY}-{user}"


class SecuredCluster:
    def __init__(self, directory: Path, connect: str, certificates: Certificates) -> None:
        self.connect = connect
        self._directory = directory
        self._certificates = certificates
        self._context = certificates.context()
        self._ports = [free_port() for _ in BROKERS]
        kinds: tuple[Kind, ...] = ("odradek", "apache")
        self.brokers = [self._make(broker_id, kind) for broker_id, kind in enumerate(kinds)]
        self._logs: list[str] = []

    def _make(self, broker_id: int, kind: Kind) -> OdradekBroker | ApacheBroker:
        port = self._ports[broker_id]
        directory = self._directory / f"broker-{broker_id}"
        settings = {
            **SETTINGS,
            **listener_settings(port, port, between_brokers="PLAIN"),
            **self._certificates.broker_settings(),
            "listeners": f"AUTH://{HOST}:{port}",
            "advertised.listeners": f"AUTH://{HOST}:{port}",
            "listener.security.protocol.map": "AUTH:SASL_SSL",
            "authorizer.class.name": ACL_AUTHORIZER,
            "super.users": "User:admin",
            "delegation.token.secret.key": f"{CANARY}-of-tokens",
            "password.encoder.secret": f"{CANARY}-of-configs",
            "zookeeper.connect": self.connect,
            "zookeeper.set.acl": "true",
            "broker.id": str(broker_id),
            "log.dirs": str(directory / "logs"),
            "default.replication.factor": "2",
            "offsets.topic.replication.factor": "2",
            "min.insync.replicas": "2",
        }
        if kind == "odradek":
            sasl = {"odradek.zookeeper.sasl.username": "kafka", "odradek.zookeeper.sasl.password": ZOOKEEPER_PASSWORD}
            return OdradekBroker(directory, settings | sasl, port)
        directory.mkdir(parents=True, exist_ok=True)
        jaas = directory / "client.conf"
        jaas.write_text(CLIENT_JAAS)
        options = (*FRUGAL, f"-Djava.security.auth.login.config={jaas}")
        return ApacheBroker(directory, self.connect, settings, options, port)

    def start(self) -> None:
        """The first broker becomes the controller."""
        for broker in self.brokers:
            broker.launch()
            broker.wait_for_line(STARTED)

    def swap(self, broker_id: int) -> None:
        """The broker becomes one of the other kind, with the same directory and metadata."""
        old = self.brokers[broker_id]
        old.stop()
        self.check_log(old)
        self.brokers[broker_id] = self._make(broker_id, "apache" if old.target == "odradek" else "odradek")
        self.brokers[broker_id].launch()
        self.brokers[broker_id].wait_for_line(STARTED)
        eventually(self._in_sync, accept=lambda sizes: sizes == {2}, timeout_s=TIMEOUT_S)

    def check_log(self, broker: OdradekBroker | ApacheBroker) -> None:
        log = broker.log_text()
        assert "NoAuth" not in log
        assert CANARY not in log
        assert ZOOKEEPER_PASSWORD not in log
        if broker.target == "odradek":
            assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:4000]

    def _in_sync(self) -> set[int]:
        topics = AdminClient(self.librdkafka("admin", PASSWORDS["admin"], "PLAIN")).list_topics(timeout=10).topics
        return {len(partition.isrs) for topic in topics.values() for partition in topic.partitions.values()}

    def librdkafka(self, user: str, password: str, mechanism: str = MECHANISM) -> dict[str, str]:
        return {
            "bootstrap.servers": ",".join(f"{HOST}:{port}" for port in self._ports),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._certificates.ca),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def connection(self, broker_id: int) -> RawClient:
        return RawClient(HOST, self._ports[broker_id], tls=self._context)

    def admin(self, broker_id: int) -> RawClient:
        client = self.connection(broker_id)
        answer = log_in(client, "PLAIN", PlainSaslClient("admin", PASSWORDS["admin"]))
        assert answer.error_code == NONE, answer
        return client

    def scram(self, broker_id: int, user: str) -> RawClient:
        """A connection of this user, when the broker has read the credential."""

        def attempt() -> tuple[RawClient, Any]:
            client = self.connection(broker_id)
            sasl = ScramSaslClient(SCRAM_MECHANISMS[MECHANISM], user, password_of(user), os.urandom(12).hex())
            answer = log_in(client, MECHANISM, sasl)
            if answer.error_code:
                client.close()
            return client, answer

        return eventually(attempt, accept=lambda found: found[1].error_code == NONE)[0]

    def call(self, broker_id: int, api: ApiKey, version: int, **fields: object) -> Any:
        """The answer to the administrator."""
        with self.admin(broker_id) as client:
            return client.call(build(api, **fields), version)

    def certificate(self, broker_id: int) -> bytes | None:
        """What the broker shows to a new client."""
        with (
            socket.create_connection((HOST, self._ports[broker_id]), 10) as plain,
            self._context.wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            return connection.getpeercert(True)

    # Changes

    def add_user(self, name: str) -> None:
        mechanism = SCRAM_MECHANISMS[MECHANISM]
        salted = mechanism.salted_password(password_of(name).encode(), SALT, ITERATIONS)
        credential = {
            "name": name,
            "mechanism": SHA_512,
            "iterations": ITERATIONS,
            "salt": SALT,
            "salted_password": salted,
        }
        controller = self.call(0, ApiKey.METADATA, 9, topics=[]).controller_id
        answer = self.call(controller, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[credential])
        assert [(result.user, result.error_code) for result in answer.results] == [(name, NONE)]

    def add_rights(self, broker_id: int, name: str) -> None:
        common = {"principal": f"User:{name}", "host": "*", "permission_type": 3, "resource_name": name}
        read, write = 3, 4
        creations = [
            {**common, "resource_type": 2, "resource_pattern_type": 3, "operation": write},
            {**common, "resource_type": 2, "resource_pattern_type": 4, "operation": read},
            {**common, "resource_type": 3, "resource_pattern_type": 4, "operation": read},
        ]
        answer = self.call(broker_id, ApiKey.CREATE_ACLS, 3, creations=creations)
        assert [result.error_code for result in answer.results] == [NONE] * len(creations)

    def add_quota(self, broker_id: int, name: str) -> None:
        quota = {
            "entity": [{"entity_type": "user", "entity_name": name}],
            "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
        }
        [entry] = self.call(broker_id, ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[quota], validate_only=False).entries
        assert entry.error_code == NONE, entry

    def renew_certificate(self, broker_id: int, identity: Identity, path: Path) -> None:
        identity.write_pkcs12(path, KEY_STORE_PASSWORD)
        store = {"location": str(path), "password": KEY_STORE_PASSWORD, "type": "PKCS12"}
        configs = {KEY_STORE + key: text for key, text in store.items()} | {JAAS_CONFIG: JAAS}
        resource = {
            "resource_type": 4,
            "resource_name": str(broker_id),
            "configs": [{"name": name, "config_operation": 0, "value": text} for name, text in configs.items()],
        }
        [response] = self.call(broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource]).responses
        assert response.error_code == NONE, response

    # What the brokers know

    def users_with_quotas(self, broker_id: int) -> set[str]:
        component = [{"entity_type": "user", "match_type": 2, "match": None}]
        described = self.call(broker_id, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=component, strict=True)
        return {part.entity_name for entry in described.entries for part in entry.entity}

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()


def topic_errors(client: RawClient, *topics: str) -> dict[str, int]:
    """What this client gets for these topics."""
    request = build(ApiKey.METADATA, topics=[{"name": name} for name in topics])
    answer: Any = client.call(request, 9)
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.fixture
def cluster(certificates: Certificates, tmp_path: Path) -> Iterator[SecuredCluster]:
    (tmp_path / "zookeeper").mkdir()
    zookeeper: ZooKeeper = authenticating_zookeeper(tmp_path / "zookeeper")
    zookeeper.start()
    try:
        with closing(SecuredCluster(tmp_path, zookeeper.new_chroot(), certificates)) as cluster:
            cluster.start()
            yield cluster
    finally:
        zookeeper.stop()


def add_member(cluster: SecuredCluster, broker_id: int, name: str) -> Member:
    """All that this broker writes for a user; the controller writes the credential."""
    admin = AdminClient(cluster.librdkafka("admin", PASSWORDS["admin"], "PLAIN"))
    admin.create_topics([NewTopic(name, 1, 2)])[name].result(TIMEOUT_S)
    cluster.add_user(name)
    cluster.add_rights(broker_id, name)
    cluster.add_quota(broker_id, name)
    with cluster.scram(broker_id, name) as client:
        created = create_token(client)
    assert (created.error_code, created.principal_name) == (NONE, name)
    return Member(name, created.token_id, created.hmac)


def check_member(cluster: SecuredCluster, broker_id: int, member: Member, other: str) -> None:
    """This broker knows the user, the token, and the rights of both."""

    def with_password() -> dict[str, int]:
        with cluster.scram(broker_id, member.name) as client:
            return topic_errors(client, member.name, other)

    def with_token() -> dict[str, int]:
        with cluster.connection(broker_id) as client:
            answer = token_log_in(client, member.token_id, member.hmac)
            return {} if answer.error_code else topic_errors(client, member.name, other)

    for errors in (with_password, with_token):
        eventually(errors, accept={member.name: NONE, other: ErrorCode.TOPIC_AUTHORIZATION_FAILED}.__eq__)
    with cluster.scram(broker_id, member.name) as client:
        [described] = describe_tokens(client, None).tokens
    assert (described.token_id, described.hmac) == (member.token_id, member.hmac)


def produce(cluster: SecuredCluster, member: Member, count: int) -> None:
    settings = cluster.librdkafka(member.name, member.password)
    producer = confluent_kafka.Producer(settings | {"acks": "all", "enable.idempotence": "false"})
    errors: list[object] = []
    for number in range(count):
        producer.produce(member.name, str(number).encode(), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * count


def consumed(cluster: SecuredCluster, member: Member, count: int, group: str) -> list[int]:
    settings = cluster.librdkafka(member.name, member.password)
    consumer = confluent_kafka.Consumer(settings | {"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([member.name])
    messages = consumer.consume(count, TIMEOUT_S)
    consumer.close()
    assert [message.error() for message in messages] == [None] * len(messages)
    return [int(message.value()) for message in messages]


def check(cluster: SecuredCluster, members: list[Member], identities: Mapping[int, Identity]) -> None:
    names = {member.name for member in members}
    for broker_id, identity in identities.items():
        for member, other in zip(members, [*members[1:], members[0]], strict=True):
            check_member(cluster, broker_id, member, other.name)
        quotas, shown = partial(cluster.users_with_quotas, broker_id), partial(cluster.certificate, broker_id)
        eventually(quotas, accept=names.__eq__)
        eventually(shown, accept=ssl.PEM_cert_to_DER_cert(identity.certificate_pem).__eq__)


def test_each_kind_uses_what_the_other_writes(
    cluster: SecuredCluster, certificates: Certificates, tmp_path: Path
) -> None:
    identities = {broker_id: certificates.authority.issue("broker", organization="Org") for broker_id in BROKERS}
    for broker_id, identity in identities.items():
        cluster.renew_certificate(broker_id, identity, tmp_path / f"renewed-{broker_id}.p12")
    members = [add_member(cluster, broker_id, f"first-{broker_id}") for broker_id in BROKERS]
    check(cluster, members, identities)
    for member in members:
        produce(cluster, member, 100)
        assert consumed(cluster, member, 100, f"{member.name}-group") == [*range(100)]
    for broker_id in BROKERS:
        cluster.swap(broker_id)
    members += [add_member(cluster, broker_id, f"second-{broker_id}") for broker_id in BROKERS]
    check(cluster, members, identities)
    for member in members[:2]:
        assert consumed(cluster, member, 100, f"{member.name}-again") == [*range(100)]
    check_nodes(cluster, {member.name for member in members})
    check_contents(cluster, members)
    for broker in cluster.brokers:
        cluster.check_log(broker)


def check_nodes(cluster: SecuredCluster, names: set[str]) -> None:
    """Only brokers write the nodes, a stranger reads no secret, and no password is in them."""
    with ExitStack() as stack:
        owner = connected(stack, cluster.connect, sasl_options=SASL)
        found = acls(owner)
        assert {path: acl for path, acl in found.items() if acl != expected_acl(path)} == {}
        assert {f"/config/users/{name}" for name in names} <= found.keys()
        assert {f"/kafka-acl/Topic/{name}" for name in names} <= found.keys()
        assert len(owner.get_children("/delegation_token/tokens")) == len(names)
        secrets = [path for path in found if owner.exists(path) and CANARY.encode() in (owner.get(path)[0] or b"")]
        assert secrets == []
        check_stranger(connected(stack, cluster.connect), found.keys())


def contents(client: KazooClient, path: str = "/") -> dict[str, bytes]:
    """The data of every node by its path."""
    try:
        found, names = {path: client.get(path)[0] or b""}, client.get_children(path)
    except NoNodeError:  # deleted meanwhile, as notifications are
        return {}
    for name in names:
        found |= contents(client, f"{path.rstrip('/')}/{name}")
    return found


def secrets(members: list[Member]) -> dict[str, bytes]:
    """All that was used and that no node may hold, in no form: not even what Apache Kafka derives from a password."""
    found = {f"password of {user}": password.encode() for user, password in PASSWORDS.items()}
    found |= {
        "key of tokens": f"{CANARY}-of-tokens".encode(),
        "key of configs": f"{CANARY}-of-configs".encode(),
        "password of a key store": KEY_STORE_PASSWORD.encode(),
        "password of static stores": STORE_PASSWORD.encode(),
        "password for ZooKeeper": ZOOKEEPER_PASSWORD.encode(),
    }
    mechanism = SCRAM_MECHANISMS[MECHANISM]
    for member in members:
        salted = mechanism.salted_password(member.password.encode(), SALT, ITERATIONS)
        found[f"password of {member.name}"] = member.password.encode()
        found[f"salted password of {member.name}"] = salted
        found[f"client key of {member.name}"] = mechanism.hmac(salted, b"Client Key")
        found[f"HMAC of the token of {member.name}"] = member.hmac
        found[f"HMAC in base64 of {member.name}"] = base64.b64encode(member.hmac)
    return found


def shape(value: object) -> object:
    """The names of fields, also of those in a text like `salt=…,iterations=4096`, in their order."""
    if isinstance(value, dict):
        return {name: shape(field) for name, field in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return re.findall(r"(?:^|,)(\w+)[=:]", value) if isinstance(value, str) else type(value).__name__


def check_contents(cluster: SecuredCluster, members: list[Member]) -> None:
    """No node holds a secret, and both kinds of brokers write the same fields: Apache Kafka's, and no more."""
    with ExitStack() as stack:
        found = contents(connected(stack, cluster.connect, sasl_options=SASL))
    for name, secret in secrets(members).items():
        assert [path for path, data in found.items() if any(form in data for form in forms_of(secret))] == [], name
    decoded = {path: json.loads(data) for path, data in found.items() if data.startswith(b"{")}
    kinds = {
        "/config/users/": {member.name for member in members},
        "/config/brokers/": {str(broker_id) for broker_id in BROKERS},
        "/delegation_token/tokens/": {member.token_id for member in members},
        "/kafka-acl/Topic/": {member.name for member in members},
    }
    for folder, names in kinds.items():
        shapes = [shape(decoded[folder + name]) for name in sorted(names)]
        assert shapes == shapes[:1] * len(names), folder
    user = decoded[f"/config/users/{members[0].name}"]["config"]
    assert shape(user)[MECHANISM] == ["salt", "stored_key", "server_key", "iterations"]  # type: ignore[index]
    for broker_id in BROKERS:
        configs = decoded[f"/config/brokers/{broker_id}"]["config"]
        for name in (KEY_STORE + "password", JAAS_CONFIG):
            assert "encryptedPassword" in shape(configs[name]), name  # type: ignore[operator]
