"""SASL listeners that AlterConfigs adds, with their JAAS entries, on Odradek and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.broker import Broker
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import CANARY, PLAIN_MODULE
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import log_in

pytestmark = pytest.mark.oracle

BROKER: Final = 4
PREFIX: Final = "listener.name.auth."
ENTRY: Final = f"{PREFIX}plain.sasl.jaas.config"


def alter(broker: Broker, configs: Mapping[str, str]) -> tuple[int, str]:
    changes = [{"name": name, "value": value, "config_operation": 0} for name, value in configs.items()]
    resource = {"resource_type": BROKER, "resource_name": "0", "configs": changes}
    with RawClient(broker.host, broker.port) as client:
        answer: Any = client.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1)
    return answer.responses[0].error_code, str(answer.responses[0].error_message)


def jaas(**passwords: str) -> str:
    users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    return f"{PLAIN_MODULE} required {users};"


def outcome(host: str, port: int, user: str, password: str) -> int | None:
    """The error of a login; None while nobody listens."""
    try:
        with RawClient(host, port) as client:
            code: int = log_in(client, "PLAIN", PlainSaslClient(user, password)).error_code
            return code
    except (ConnectionRefusedError, ConnectionClosedError):
        return None


def test_a_listener_with_the_entry_of_its_mechanism(new_broker: Callable[..., Broker]) -> None:
    broker = new_broker(**{"password.encoder.secret": "of the encoder"})
    port = free_port()
    password = f"{CANARY}-of-alice"
    listener = {
        "listeners": f"PLAINTEXT://{broker.host}:{broker.port},AUTH://{broker.host}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
        f"{PREFIX}sasl.enabled.mechanisms": "PLAIN",
    }
    assert alter(broker, listener | {ENTRY: jaas(alice=password)}) == (ErrorCode.NONE, "None")
    eventually(lambda: outcome(broker.host, port, "alice", password), accept=lambda code: code == ErrorCode.NONE)
    assert outcome(broker.host, port, "alice", "wrong") == ErrorCode.SASL_AUTHENTICATION_FAILED

    assert alter(broker, {ENTRY: jaas(alice=password, bob="of-bob")}) == (ErrorCode.NONE, "None")
    assert outcome(broker.host, port, "alice", password) == ErrorCode.NONE
    assert outcome(broker.host, port, "bob", "of-bob") == ErrorCode.SASL_AUTHENTICATION_FAILED, "that listener is there"

    broker.stop()
    broker.start()
    for user, own in (("alice", password), ("bob", "of-bob")):
        assert outcome(broker.host, port, user, own) == ErrorCode.NONE, "a start reads the stored entry"
    if broker.target == "odradek":
        assert CANARY not in broker.log_text()
