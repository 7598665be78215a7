"""Which static settings a broker refuses to start with, beside Apache Kafka: every key with border values and nonsense,
and the settings that have to fit each other.

Apache's side of it is its `KafkaConfig`, asked in a JVM without a broker; ours is `BrokerConfig`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config.keys.not_served.effects import REFUSED
from odradek.storage.config.config_def import ConfigError
from tests.conformance.transcripts.configs.hostile_values import hostile_values
from tests.conformance.transcripts.configs.related_settings import Settings, related_settings
from tests.support.processes.apache.config_oracle import kafka_refuses

pytestmark = pytest.mark.oracle

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "static_settings"
ZOOKEEPER = {"zookeeper.connect": "localhost:2181"}

PYTHON_CLASSES = (
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "client.quota.callback.class",
    "principal.builder.class",
)
JAVA_CLASSES = (
    "replica.selector.class",
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
)
NOT_COMPARED = frozenset({*REFUSED, *PYTHON_CLASSES, *JAVA_CLASSES, "metadata.dir"})
"""Refused by name, whatever the value; Python classes, not Java's; classes of Kafka of which some are known by name; a
key of ours."""

SAME = (
    # Texts of Apache that speak of its own classes and of Java's arithmetic, and ours that say more, as one text.
    (r"^requirement failed: ", ""),
    (r" \(from [\w.]+\)$", ""),
    (r"ListenerName\((\w+)\)", r"\1"),
    (r"begin 0, end -1, length \d+|'[^']*' is not a pair of name:value", "<not a pair>"),
    (r"^/ by zero$|^Log cleaner threads should be at least 1$", "<no threads>"),
    (r'^For input string: ".*|.* is not a number of connections$', "<not a number>"),
    (r"Invalid value .*? for configuration", "Invalid value <value> for configuration"),
)


LATER = ("offset map is too small to fit in even a single message", "socket.receive.buffer.bytes=")
"""How messages begin of what Kafka refuses later in its start than the oracle goes: Cleaner and Acceptor."""


def refused(settings: Mapping[str, str]) -> str | None:
    try:
        BrokerConfig(settings)
    except ConfigError as error:
        return None if str(error).startswith(LATER) else str(error)
    return None


def as_compared(message: str | None) -> str:
    if message is None:
        return "taken"
    for pattern, ours in SAME:
        message = re.sub(pattern, ours, message, flags=re.DOTALL)
    return message


def values_of_each_key() -> Iterator[Settings]:
    for key in BROKER_CONFIG_KEYS.values():
        if key.name not in NOT_COMPARED and not key.name.startswith("odradek."):
            yield from ({key.name: text} for text in hostile_values(key))


def answers(cases: Iterable[Settings], target: str) -> dict[str, dict[str, list[str]]]:
    """By the names that are set: what is said, and to which values."""
    settings = list(cases)
    whole = [ZOOKEEPER | one for one in settings]
    messages = kafka_refuses(whole) if target == "apache" else map(refused, whole)
    found: dict[str, dict[str, list[str]]] = {}
    for one, message in zip(settings, messages, strict=True):
        by_message = found.setdefault(" ".join(one), {})
        by_message.setdefault(as_compared(message), []).append(" ".join(map(repr, one.values())))
    return found


@pytest.mark.parametrize("cases", [values_of_each_key, related_settings])
def test_what_a_start_refuses(
    cases: Callable[[], Iterable[Settings]], target: str, request: pytest.FixtureRequest
) -> None:
    found = answers(cases(), target)
    golden = GOLDEN / f"{cases.__name__}.json"
    if request.config.getoption("--record"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        lines = (f"{json.dumps(names)}: {json.dumps(said)}" for names, said in found.items())
        golden.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    expected = json.loads(golden.read_text())
    differences = [
        f"{names}\n    Apache: {expected.get(names)}\n    found:  {found.get(names)}"
        for names in sorted(expected.keys() | found.keys())
        if expected.get(names) != found.get(names)
    ]
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences)
