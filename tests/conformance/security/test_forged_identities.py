"""Credentials and identities that are not the client's own: each is refused, nothing changes, and no secret is logged.

ODRADEK_SOAK_ATTEMPTS shortens the full run, and ODRADEK_SOAK_SEED repeats it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from tests.support.loads.hostile.forged_identities import PASSWORDS, SCRAM, TOPIC, Attempts, scram_credential
from tests.support.loads.hostile.hostile_input import GROWTH_BYTES, SOON_S, Watch, resident
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build

FEW = 200
FULL = int(os.environ.get("ODRADEK_SOAK_ATTEMPTS", "100000"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    plain = free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},AUTH://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "listener.name.auth.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS};"
        ),
        "listener.name.auth.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": "canary-of-tokens",
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }
    with running(OdradekBroker(tmp_path_factory.mktemp("forged"), settings, plain)) as process:
        make_topic(process, TOPIC)
        with RawClient(process.host, process.port) as client:
            client.call(build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, upsertions=[scram_credential("alice")]), 0)
            rights = [
                {"resource_type": 2, "resource_name": TOPIC, "resource_pattern_type": 3, "principal": "User:mallory"}
                | {"host": "*", "operation": operation, "permission_type": 3}
                for operation in (3, 4)
            ]
            client.call(build(ApiKey.CREATE_ACLS, creations=rights), 2)
            data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"first")}]}]
            client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=data), 8)
        yield process


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


@pytest.mark.parametrize("count", [FEW, pytest.param(FULL, marks=pytest.mark.soak)], ids=["few", "full"])
def test_false_credentials_and_identities_are_refused(broker: OdradekBroker, port: int, count: int) -> None:
    print(f"seed {SEED}, {count} attempts")
    attempts, watch = Attempts(broker, port, random.Random(SEED)), Watch(broker)
    before = state(broker)
    with watch.looking():
        attempts.make(FEW)
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
