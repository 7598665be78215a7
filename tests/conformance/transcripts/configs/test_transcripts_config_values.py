"""What Apache Kafka answers to border values and nonsense for every config that can be altered while a broker runs.

Each value is validated only, by itself, so that a test leaves nothing behind.
"""

from __future__ import annotations

import math
import re

import pytest

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, UpdateMode
from odradek.broker.config.keys.quotas import BROKER_QUOTAS
from odradek.protocol.api import ApiKey
from odradek.storage.config.config_def import ConfigKey
from odradek.storage.config.log_config import TOPIC_CONFIGS
from tests.conformance.transcripts.configs.hostile_values import hostile_values
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

TOPIC, BROKER = 2, 4
VERSION = 1

SAME = (
    # Apache's texts on the left that speak of its own classes and of Java's arithmetic; ours say the same in words.
    (r"Invalid value [\w.]+Exception: (.*) for configuration Invalid dynamic configuration", r"\1"),
    (r"requirement failed: ", ""),
    (r"begin 0, end -1, length \d+|'[^']*' is not a pair of name:value", "<not a pair>"),
    (r"/ by zero|Log cleaner threads should be at least 1", "<no threads>"),
    (r"Validation of dynamic config update of .* failed.*|Invalid value .*no such class", "<no such reporter>"),
    (r"callback.handler.class: (Class 1 could not be found.|String must be one of: .*)", "<no such handler>"),
    (r"Error creating broker listeners from '[^']*'", "Error creating broker listeners"),
)

NOT_COMPARED = ("odradek.", "metadata.dir", "org.apache.kafka.", "controller.quorum.")
"""Keys of ours, of which one is a property of Kafka's JVM, and those of KRaft that have a syntax of their
own: they have no effect here."""

STRICTER = "42 Invalid value <value> for configuration flush.ms: Value must be at least 0 (from log.flush.interval.ms)"
"""Apache takes this value and can make no log from then on, nor start again; here it is refused."""


def answer(t: Transcript, resource_type: int, name: str, key: str, value: str) -> str:
    """`taken`, or the code of the error and its message."""
    resource = {
        "resource_type": resource_type,
        "resource_name": name,
        "configs": [{"name": key, "config_operation": 0, "value": value}],
    }
    request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=True)
    plain = t.plain(t.quietly(request, VERSION), VERSION)["responses"]
    assert isinstance(plain, list)
    [response] = plain
    assert isinstance(response, dict)
    if not response["error_code"]:
        return "taken"
    message = str(response["error_message"])
    for pattern, ours in SAME:
        message = re.sub(pattern, ours, message)
    return f"{response['error_code']} {message}"


def sweep(t: Transcript, resource_type: int, name: str, key: ConfigKey, prefix: str = "") -> None:
    label = f"{'topic' if resource_type == TOPIC else 'broker' if name else 'cluster'} {prefix}{key.name}"
    values_by_answer: dict[str, list[str]] = {}
    for value in hostile_values(key):
        said = answer(t, resource_type, name, prefix + key.name, value)
        said = re.sub("Invalid value .*? for configuration", "Invalid value <value> for configuration", said)
        if t.broker.target == "odradek" and said == STRICTER:
            said = "taken"
        values_by_answer.setdefault(said, []).append(value)
    t.note(label, {said: sorted(values) for said, values in values_by_answer.items()})


DYNAMIC = [key for key in BROKER_CONFIG_KEYS.values() if key.update_mode is not UpdateMode.READ_ONLY]


@pytest.mark.parametrize("broker_id", ["0", ""], ids=["of_a_broker", "of_all_brokers"])
def test_values(transcript: Transcript, broker_id: str) -> None:
    for key in (*DYNAMIC, *BROKER_QUOTAS):
        sweep(transcript, BROKER, broker_id, key)


@pytest.mark.parametrize("broker_id", ["0", ""], ids=["of_a_broker", "of_all_brokers"])
def test_values_for_a_listener(transcript: Transcript, broker_id: str) -> None:
    for key in DYNAMIC:
        for prefix in ("listener.name.plaintext.", "listener.name.other."):
            sweep(transcript, BROKER, broker_id, key, prefix)


@pytest.mark.parametrize("broker_id", ["0", ""], ids=["of_a_broker", "of_all_brokers"])
def test_keys_that_are_read_at_start_alone(transcript: Transcript, broker_id: str) -> None:
    t = transcript
    for key in BROKER_CONFIG_KEYS.values():
        if key.update_mode is UpdateMode.READ_ONLY and not key.name.startswith(NOT_COMPARED):
            t.note(key.name, answer(t, BROKER, broker_id, key.name, "1"))
            name = f"listener.name.plaintext.{key.name}"
            t.note(name, answer(t, BROKER, broker_id, name, "1"))


def test_values_of_a_topic(transcript: Transcript) -> None:
    t = transcript
    topic = t.name("configured")
    t.quietly(
        build(
            ApiKey.CREATE_TOPICS,
            topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}],
            timeout_ms=10_000,
        ),
        2,
    )
    for key in TOPIC_CONFIGS:
        sweep(t, TOPIC, topic, key)


QUOTAS = {
    "user": ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    "client-id": ("producer_byte_rate", "connection_creation_rate"),
    "ip": ("connection_creation_rate", "producer_byte_rate"),
}
NUMBERS = (
    *(math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 1.0, 0.5, 1.0000001, 1.00001, 2147483647.0, 2147483648.0),
    *(9e15 + 1, 9.3e18, 1e308, 5e-324, -1e-7, 0.9999999),
)


def test_values_of_quotas(transcript: Transcript) -> None:
    """What is stored is described as a number again."""
    t = transcript
    for kind, keys in QUOTAS.items():
        for key in keys:
            t.note(f"{kind} {key}", {repr(value): quota_answer(t, kind, key, value) for value in NUMBERS})


def quota_answer(t: Transcript, kind: str, key: str, value: float) -> str:
    """The value that is described after it was set, or the code of the error and its message."""
    name = "192.0.2.1" if kind == "ip" else t.name("quotas")

    def alter(*, remove: bool) -> str | None:
        ops = [{"key": key, "value": value, "remove": remove}]
        entry = {"entity": [{"entity_type": kind, "entity_name": name}], "ops": ops}
        answer = t.quietly(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]), 1)
        (result,) = answer.entries  # type: ignore[attr-defined]
        return f"{result.error_code} {result.error_message}" if result.error_code else None

    refused = alter(remove=False)
    if refused is not None:
        return refused
    asked = [{"entity_type": kind, "match_type": 0, "match": name}]
    described = t.quietly(build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=asked, strict=True), 1)
    (entry,) = described.entries  # type: ignore[attr-defined]
    (quota,) = entry.values
    assert alter(remove=True) is None
    return repr(quota.value)
