"""What Apache Kafka answers about configs: describe, alter and alter incrementally, for topics and brokers."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult
from tests.support.transcripts.transcript import Plain, Transcript
from tests.support.waiting import eventually
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def create(t: Transcript, stem: str, **configs: str) -> str:
    topic = t.name(stem)
    settings = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    new = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    return topic


def describe(resource_type: int, name: str, keys: list[str] | None = None, **fields: object) -> Request:
    resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": keys}
    return build(ApiKey.DESCRIBE_CONFIGS, resources=[resource], **fields)


def alter(resource_type: int, name: str, configs: dict[str, str | None], **fields: object) -> Request:
    given = [{"name": key, "value": value} for key, value in configs.items()]
    resource = {"resource_type": resource_type, "resource_name": name, "configs": given}
    return build(ApiKey.ALTER_CONFIGS, resources=[resource], **fields)


def incremental(resource_type: int, name: str, *changes: tuple[str, int, str | None], **fields: object) -> Request:
    given = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    resource = {"resource_type": resource_type, "resource_name": name, "configs": given}
    return build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], **fields)


def test_describe_a_topic(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "described", retention_ms="1000", cleanup_policy="compact,delete")
    t.call("everything v4", describe(TOPIC, topic, include_synonyms=True, include_documentation=True), 4)
    for version in range(4):
        t.call(f"everything v{version}", describe(TOPIC, topic), version)
    keys = ["retention.ms", "segment.bytes", "no.such.key"]
    t.call("some", describe(TOPIC, topic, keys, include_synonyms=True), 2)
    t.call("no keys", describe(TOPIC, topic, []), 4)
    t.call("unknown topic", describe(TOPIC, t.name("missing")), 4)
    t.call("empty topic", describe(TOPIC, ""), 4)
    t.call("bad name", describe(TOPIC, "a b"), 4)
    for resource_type in (0, 1, 3, 5, 16, 32, 99):
        t.call(f"type {resource_type}", describe(resource_type, "x"), 4)
    t.call("no resources", build(ApiKey.DESCRIBE_CONFIGS), 4)


def test_describe_a_broker(transcript: Transcript) -> None:
    """The broker's own table: every key with its type, source, default and documentation."""
    t = transcript
    answer = t.quietly(describe(BROKER, "0", include_synonyms=True, include_documentation=True), 4)
    [result] = answer.results
    local = (
        "listeners",
        "advertised.listeners",
        "log.dirs",
        "log.dir",
        "zookeeper",
        "metadata.",
        "broker.id",
        "node.id",
        "odradek.",
    )
    for config in sorted(result.configs, key=lambda config: config.name):
        if not config.name.startswith(local):
            t.note(config.name, t.plain(config, 4))
    t.note("every key", [_row(config) for config in sorted(result.configs, key=lambda config: config.name)])
    t.call("another broker", describe(BROKER, "7"), 4)
    t.call("not a number", describe(BROKER, "x"), 4)
    t.call("the cluster default", describe(BROKER, ""), 4)


def _row(config: DescribeConfigsResourceResult) -> list[Plain]:
    return [config.name, config.config_type, config.read_only, config.is_sensitive]


def test_describe_what_was_set(transcript: Transcript) -> None:
    """Dynamic configs that are in no table of `server.properties`, or not shown unless they are set."""
    t = transcript
    for name, values in {
        "0": {
            "leader.replication.throttled.rate": "1000",
            "follower.replication.throttled.rate": "1001",
            "replica.alter.log.dirs.io.max.bytes.per.second": "1002",
            "listener.name.plaintext.max.connections": " 77 ",
            "log.cleanup.policy": "compact, delete",
            "no.such.key": "x",
        },
        "": {"leader.replication.throttled.rate": "2000", "log.roll.ms": " 5000 ", "another.key": "y"},
    }.items():
        changes = [(key, SET, value) for key, value in values.items()]
        [response] = t.quietly(incremental(BROKER, name, *changes), 1).responses
        assert response.error_code == 0, response
        try:
            [result] = eventually(
                lambda name=name, values=values: (
                    t.quietly(  # type: ignore[misc]
                        describe(BROKER, name, list(values), include_synonyms=True, include_documentation=True), 4
                    ).results
                ),
                accept=lambda results, values=values: len(results[0].configs) == len(values),  # type: ignore[misc]
            )
            for config in sorted(result.configs, key=lambda config: config.name):
                t.note(f"{config.name} of {name or 'all'}", t.plain(config, 4))
            answer = t.quietly(describe(BROKER, "0"), 4)
            t.note(f"keys of {name or 'all'}", sorted(config.name for config in answer.results[0].configs))
        finally:
            t.quietly(incremental(BROKER, name, *((key, DELETE, None) for key in values)), 1)


def test_alter_configs(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "altered", retention_ms="1000")

    def state(label: str) -> None:
        answer = t.quietly(describe(TOPIC, topic), 4)
        own = {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}
        t.note(label, dict(sorted(own.items())))

    t.sweep("set", range(3), lambda v: alter(TOPIC, topic, {"segment.bytes": str(100_000 + v)}))
    state("everything else went back to its default")
    t.call("validated only", alter(TOPIC, topic, {"segment.bytes": "777777"}, validate_only=True), 2)
    for label, configs in {
        "unknown key": {"no.such.key": "1"},
        "bad value": {"segment.bytes": "x"},
        "too small": {"segment.bytes": "3"},
        "null value": {"segment.bytes": None},
        "nothing": {},
    }.items():
        t.call(label, alter(TOPIC, topic, configs), 2)
        state(f"after {label}")
    t.call("unknown topic", alter(TOPIC, t.name("missing"), {"segment.bytes": "100000"}), 2)
    t.call("bad name", alter(TOPIC, "a b", {}), 2)
    t.call("another broker", alter(BROKER, "9", {"log.cleaner.threads": "1"}), 2)
    t.call("read-only broker config", alter(BROKER, "0", {"num.partitions": "3"}, validate_only=True), 2)
    t.call("type 99", alter(99, "x", {}), 2)
    t.call("no resources", build(ApiKey.ALTER_CONFIGS), 2)


def test_incremental_alter_configs(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "changed", retention_ms="1000")

    def change(label: str, *changes: tuple[str, int, str | None], name: str = topic, version: int = 1) -> None:
        t.call(label, incremental(TOPIC, name, *changes), version)
        answer = t.quietly(describe(TOPIC, topic), 4)
        own = {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}
        t.note(f"after {label}", dict(sorted(own.items())))

    change("set v0", ("segment.bytes", SET, "100000"), version=0)
    change("set and delete", ("segment.ms", SET, "5"), ("retention.ms", DELETE, None))
    change("append", ("cleanup.policy", APPEND, "compact"))
    change("append what is there", ("cleanup.policy", APPEND, "compact"))
    change("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    change("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    change("append to no list", ("segment.bytes", APPEND, "5"))
    change("delete what is not set", ("flush.ms", DELETE, None))
    change("delete with a value", ("segment.ms", DELETE, "6"))
    change("set null", ("segment.ms", SET, None))
    change("operation 9", ("segment.ms", 9, "5"))
    change("a key twice", ("segment.ms", SET, "5"), ("segment.ms", SET, "6"))
    change("unknown key", ("no.such.key", SET, "1"))
    change("bad value", ("segment.bytes", SET, "x"))
    change("bad and good", ("segment.bytes", SET, "x"), ("flush.ms", SET, "9"))
    change("empty key", ("", SET, "9"))
    change("nothing")
    change("unknown topic", ("segment.ms", SET, "5"), name=t.name("missing"))
    change("throttle", ("leader.replication.throttled.replicas", SET, "0:0"))
    change("bad throttle", ("leader.replication.throttled.replicas", SET, "0-0"))
    t.call("validated only", incremental(TOPIC, topic, ("flush.ms", SET, "1"), validate_only=True), 1)
    t.call("another broker", incremental(BROKER, "9", ("log.cleaner.threads", SET, "1")), 1)
    for label, key, value in (
        ("dynamic", "log.cleaner.threads", "2"),
        ("read-only", "num.partitions", "2"),
        ("unknown", "no.such.key", "2"),
        ("bad value", "log.cleaner.threads", "x"),
        ("throttle", "replica.alter.log.dirs.io.max.bytes.per.second", "100"),
        ("bad throttle", "replica.alter.log.dirs.io.max.bytes.per.second", "x"),
        ("negative throttle", "leader.replication.throttled.rate", "-1"),
    ):
        t.call(f"broker config, {label}", incremental(BROKER, "0", (key, SET, value), validate_only=True), 1)
        t.call(f"cluster config, {label}", incremental(BROKER, "", (key, SET, value), validate_only=True), 1)
    t.call("type 99", incremental(99, "x"), 1)
    t.call("no resources", build(ApiKey.INCREMENTAL_ALTER_CONFIGS), 1)


def test_what_is_refused_first(transcript: Transcript) -> None:
    t = transcript
    missing = t.name("missing")
    for label, change in {
        "append to no list": ("segment.bytes", APPEND, "5"),
        "subtract from no list": ("segment.ms", SUBTRACT, "5"),
        "append to an unknown key": ("no.such.key", APPEND, "5"),
        "append to a list": ("cleanup.policy", APPEND, "compact"),
        "bad value": ("segment.bytes", SET, "x"),
        "operation 9": ("segment.bytes", 9, "x"),
    }.items():
        for name in (missing, "a b"):
            t.call(
                f"{label} of {'a bad name' if name == 'a b' else 'a missing topic'}",
                incremental(TOPIC, name, change),
                1,
            )
    for kind in (CLIENT_METRICS, GROUP):
        t.call(f"type {kind}", incremental(kind, "x", ("interval.ms", SET, "1000")), 1)
        t.call(f"type {kind}, without names", incremental(kind, ""), 1)
        t.call(f"type {kind}, all at once", alter(kind, "x", {"interval.ms": "1000"}), 2)


def test_a_topic_without_a_leader(transcript: Transcript) -> None:
    """All its replicas are on brokers that are not there: clients are told that there is no such topic."""
    t = transcript
    topic = t.name("leaderless")
    assigned = {
        "assignments": [{"partition_index": 0, "broker_ids": [7]}],
        "num_partitions": -1,
        "replication_factor": -1,
    }
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[{"name": topic, **assigned}], timeout_ms=300), 5)
    for label, fields in {
        "replicas": {"num_partitions": 1, "replication_factor": 0},
        "configs": {**assigned, "configs": [{"name": "flush.ms", "value": None}]},
    }.items():
        again = build(ApiKey.CREATE_TOPICS, topics=[{"name": topic, **fields}], timeout_ms=300)
        t.call(f"created again with invalid {label}", again, 5)
    t.call("described", describe(TOPIC, topic), 4)
    t.call("altered", alter(TOPIC, topic, {"segment.bytes": "100000"}), 2)
    t.call("changed", incremental(TOPIC, topic, ("segment.bytes", SET, "100000")), 1)
    t.call("created again", build(ApiKey.CREATE_TOPICS, topics=[{"name": topic, **assigned}], timeout_ms=300), 5)


def test_loggers(transcript: Transcript) -> None:
    t = transcript
    name = "kafka.server.KafkaApis"
    t.call("described", describe(BROKER_LOGGER, "0", [name]), 4)
    t.call("described with documentation", describe(BROKER_LOGGER, "0", [name], include_documentation=True), 4)
    t.call("described v2", describe(BROKER_LOGGER, "0", [name], include_synonyms=True), 2)

    def change(label: str, *changes: tuple[str, int, str | None]) -> None:
        t.call(label, incremental(BROKER_LOGGER, "0", *changes, validate_only=True), 1)

    change("twice", (name, SET, "INFO"), (name, SET, "DEBUG"))
    change("twice, with an operation that there is not", (name, APPEND, "INFO"), (name, DELETE, None))
    change("null", (name, SET, None))
    change("null, appended", (name, APPEND, None))
    change("null, deleted", (name, DELETE, None))
    changes = [{"name": name, "config_operation": SET, "value": "INFO"}]
    resource = {"resource_type": BROKER_LOGGER, "resource_name": "0", "configs": changes}
    t.call("two resources", build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource, resource]), 1)
    t.call("all at once", alter(BROKER_LOGGER, "0", {name: "INFO"}), 2)
