"""Credentials and identities that are not the client's own: each is refused, nothing changes, and no secret is logged.

ODRADEK_SOAK_ATTEMPTS shortens the full run, and ODRADEK_SOAK_SEED repeats it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from tests.conformance.security.conftest import Certificates
from tests.support.loads.hostile.forged_identities import PASSWORDS, SCRAM_TYPES, TOPIC, Attempts, scram_credential
from tests.support.loads.hostile.hostile_input import GROWTH_BYTES, SOON_S, Watch, resident
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import PLAIN_MODULE, SCRAM_MODULE
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build

FEW = 150
WARM_UP = 100
FULL = int(os.environ.get("ODRADEK_SOAK_ATTEMPTS", "100000")) // 4
"""Over each listener with each mechanism."""
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())


class Ports(NamedTuple):
    """Of the listeners with SASL."""

    plain: int
    tls: int


@pytest.fixture(scope="module")
def ports() -> Ports:
    return Ports(free_port(), free_port())


@pytest.fixture(scope="module")
def broker(
    ports: Ports, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OdradekBroker]:
    plain = free_port()
    settings = {
        **certificates.broker_settings(),
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},AUTH://127.0.0.1:{ports.plain},TLSAUTH://127.0.0.1:{ports.tls}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT,TLSAUTH:SASL_SSL",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_TYPES)),
        **jaas("auth"),
        **jaas("tlsauth"),
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": "canary-of-tokens",
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }
    with running(OdradekBroker(tmp_path_factory.mktemp("forged"), settings, plain)) as process:
        make_topic(process, TOPIC)
        with RawClient(process.host, process.port) as client:
            for mechanism in SCRAM_TYPES:
                upsertions = [scram_credential("alice", mechanism)]
                client.call(build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, upsertions=upsertions), 0)
            rights = [
                {"resource_type": 2, "resource_name": TOPIC, "resource_pattern_type": 3, "principal": "User:mallory"}
                | {"host": "*", "operation": operation, "permission_type": 3}
                for operation in (3, 4)
            ]
            client.call(build(ApiKey.CREATE_ACLS, creations=rights), 2)
            data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"first")}]}]
            client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=data), 8)
        yield process


def jaas(listener: str) -> dict[str, str]:
    prefix = f"listener.name.{listener}"
    plain = {f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {USERS};"}
    return plain | {f"{prefix}.{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in SCRAM_TYPES}


def state(broker: OdradekBroker) -> list[Response]:
    """What no attempt may change."""
    asked = [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    with RawClient(broker.host, broker.port) as client:
        return [
            client.call(build(ApiKey.METADATA, topics=[{"name": TOPIC}]), 9),
            client.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=asked), 5),
            client.call(build(ApiKey.LIST_GROUPS), 3),
            client.call(build(ApiKey.LIST_TRANSACTIONS), 0),
            client.call(build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=None), 0),
            client.call(build(ApiKey.DESCRIBE_ACLS, resource_type_filter=1, operation=1, permission_type=1), 1),
        ]


@pytest.mark.parametrize("scram", SCRAM_TYPES)
@pytest.mark.parametrize("has_tls", [False, True], ids=["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("count", [FEW, pytest.param(FULL, marks=pytest.mark.soak)], ids=["few", "full"])
def test_false_credentials_and_identities_are_refused(
    broker: OdradekBroker, ports: Ports, certificates: Certificates, count: int, has_tls: bool, scram: str
) -> None:
    print(f"seed {SEED}, {count} attempts")
    port = ports.tls if has_tls else ports.plain
    tls = certificates.context(certificates.client) if has_tls else None
    attempts, watch = Attempts(broker, port, random.Random(SEED), tls, scram), Watch(broker)
    before = state(broker)
    with watch.looking():
        attempts.make(WARM_UP)
        warm = resident(broker)
        attempts.make(count)
    growth = resident(broker) - warm
    print(f"{dict(sorted(attempts.made.items()))}")
    print(f"{count} attempts: grown by {growth >> 20} MB, {watch.text}")
    assert state(broker) == before
    assert growth < GROWTH_BYTES
    assert watch.longest_s < SOON_S
    log = broker.log_text()
    for secret in (*PASSWORDS.values(), "canary-of-tokens"):
        assert secret not in log
