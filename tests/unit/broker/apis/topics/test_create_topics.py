"""CreateTopics: refusals of the handler, and the topic in the response."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopicResult
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5


def create(
    broker: InProcessBroker, *topics: dict[str, object], version: int = 7, **fields: object
) -> list[CreatableTopicResult]:
    defaults: dict[str, object] = {"num_partitions": 1, "replication_factor": 1}
    asked = [defaults | topic for topic in topics]
    request = build(ApiKey.CREATE_TOPICS, topics=asked, timeout_ms=1_000, **fields)
    return broker.call(request, version).topics  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("version", range(8))
def test_created_topic_is_usable_and_described(broker: InProcessBroker, version: int) -> None:
    name = f"v{version}"
    (result,) = create(broker, {"name": name, "num_partitions": 3}, version=version)
    assert (result.name, result.error_code, result.error_message) == (name, NONE, None if version >= 1 else "")
    assert len(broker.services.metadata_cache.snapshot.partitions[name]) == 3
    assert result.topic_id == (broker.topic_id(name) if version >= 7 else ZERO_UUID)
    counts = (3, 1) if version >= 5 else (-1, -1)
    assert (result.num_partitions, result.replication_factor) == counts


def test_configs_and_where_they_come_from(broker: InProcessBroker) -> None:
    configs = [{"name": "retention.ms", "value": "1234"}]
    (result,) = create(broker, {"name": "configured", "configs": configs})
    found = {config.name: config for config in result.configs or ()}
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("1234", TOPIC_CONFIG)
    assert found["cleanup.policy"].config_source == DEFAULT_CONFIG
    assert not any(config.is_sensitive or config.read_only for config in found.values())


def test_nothing_is_created_when_only_validating(broker: InProcessBroker) -> None:
    (result,) = create(broker, {"name": "dry", "num_partitions": 2}, validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id) == (NONE, 2, ZERO_UUID)
    assert not broker.services.metadata_cache.contains("dry")


def test_topic_named_twice_is_refused_twice_and_the_others_are_created(broker: InProcessBroker) -> None:
    results = create(broker, {"name": "twice"}, {"name": "once"}, {"name": "twice"})
    message = "Found multiple entries for this topic."
    assert [(r.name, r.error_code, r.error_message) for r in results] == [
        ("twice", ErrorCode.INVALID_REQUEST, message),
        ("once", NONE, None),
        ("twice", ErrorCode.INVALID_REQUEST, message),
    ]


def test_topic_of_kraft_is_prohibited(broker: InProcessBroker) -> None:
    (result,) = create(broker, {"name": "__cluster_metadata"})
    assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert "prohibited" in (result.error_message or "")


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "none", "num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "far", "replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "odd", "configs": [{"name": "no.such.config", "value": "1"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "nil", "configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "both", "assignments": [{"partition_index": 0, "broker_ids": [0]}]}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals_leave_counts_and_configs_unsaid(
    broker: InProcessBroker, topic: dict[str, object], error: ErrorCode
) -> None:
    (result,) = create(broker, topic)
    assert result.error_code == error
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert result.error_message


def test_existing_topic(broker: InProcessBroker) -> None:
    create(broker, {"name": "there"})
    (result,) = create(broker, {"name": "there"})
    assert (result.error_code, result.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'there' already exists.",
    )


def test_only_the_controller_creates(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(broker.services.controller), "is_active", False)
    (result,) = create(broker, {"name": "late"})
    assert (result.error_code, result.error_message) == (ErrorCode.NOT_CONTROLLER, "")
