"""What DescribeConfigs shows of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.controller.admin.config_admin import describe_topic_configs
from odradek.storage.config.config_def import ConfigType


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


def broker_synonyms(name: str) -> Sequence[Synonym]:
    table = {
        "log.retention.ms": [Synonym("log.retention.hours", "168", 5)],
        "log.segment.bytes": [Synonym("log.segment.bytes", "1000", 4), Synonym("log.segment.bytes", "1073741824", 5)],
    }
    return table.get(name, [])


def test_described_topic_configs() -> None:
    described = {
        config.name: config
        for config in describe_topic_configs(
            "t",
            {"retention.ms": "5", "cleanup.policy": "compact, delete"},
            {"log.segment.bytes": "1000"},
            broker_synonyms,
        )
    }
    retention = described["retention.ms"]
    assert (retention.value, retention.config_source, retention.config_type) == ("5", 1, ConfigType.LONG)
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.hours", "168", 5),
    ]
    segment = described["segment.bytes"]
    assert (segment.value, segment.config_source, segment.is_default) == ("1000", 4, False)
    assert described["cleanup.policy"].value == "compact,delete"
    assert (described["min.insync.replicas"].value, described["min.insync.replicas"].config_source) == ("1", 5)
    assert described["min.insync.replicas"].is_default
    assert all(config.documentation for config in described.values())
    (only,) = describe_topic_configs("t", {}, {}, broker_synonyms, ["retention.ms", "unknown"])
    assert (only.name, only.value) == ("retention.ms", "604800000")


def test_a_limit_of_timestamps_from_the_brokers_difference_is_shown_as_a_default() -> None:
    """As in Apache Kafka: source and synonyms are those of the limit's own key of the broker."""
    own = Synonym("log.message.timestamp.after.max.ms", str(2**63 - 1), 5)
    (limit,) = describe_topic_configs(
        "t",
        {},
        {"log.message.timestamp.difference.max.ms": "5"},
        lambda name: [own] if name == own.name else [],
        ["message.timestamp.after.max.ms"],
    )
    assert (limit.value, limit.config_source, limit.is_default) == ("5", 5, True)
    assert [(s.name, s.value, s.source) for s in limit.synonyms] == [own]


def test_configs_without_a_meaning_are_shown_as_secrets() -> None:
    described = {
        config.name: config
        for config in describe_topic_configs("t", {"flush.ms": "-1", "password": "x"}, {}, broker_synonyms)
    }
    assert described["flush.ms"].value == str(2**63 - 1), "what holds, for the value cannot be"
    assert (described["password"].value, described["password"].is_sensitive) == (None, True)
    assert described["password"].config_source == 1
