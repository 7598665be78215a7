"""CreatePartitions: duplicates, refusals, and partitions that can be used when the answer comes."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
Found = dict[str, tuple[int, str | None]]


def grow(broker: InProcessBroker, *topics: tuple[str, int], version: int = 3, **fields: bool) -> Found:
    asked = [{"name": name, "count": count, "assignments": None} for name, count in topics]
    request = build(ApiKey.CREATE_PARTITIONS, topics=asked, timeout_ms=1_000, **fields)
    results = broker.call(request, version).results  # type: ignore[attr-defined]
    assert len({result.name for result in results}) == len(results), "one result a topic"
    return {result.name: (result.error_code, result.error_message) for result in results}


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_have_leaders(broker: InProcessBroker, version: int) -> None:
    name = f"v{version}"
    broker.create_topic(name)
    assert grow(broker, (name, 3), version=version) == {name: (NONE, None)}
    assert len(broker.services.metadata_cache.snapshot.partitions[name]) == 3


def test_only_validating_changes_nothing(broker: InProcessBroker) -> None:
    broker.create_topic("dry")
    assert grow(broker, ("dry", 3), validate_only=True) == {"dry": (NONE, None)}
    assert len(broker.services.metadata_cache.snapshot.partitions["dry"]) == 1


def test_topic_named_twice_is_refused_and_the_others_grow(broker: InProcessBroker) -> None:
    broker.create_topic("twice")
    broker.create_topic("once")
    found = grow(broker, ("twice", 2), ("once", 2), ("twice", 3))
    assert found == {"twice": (ErrorCode.INVALID_REQUEST, "Duplicate topic in request."), "once": (NONE, None)}
    assert len(broker.services.metadata_cache.snapshot.partitions["twice"]) == 1


@pytest.mark.parametrize("count", [1, 2, 0, -1])
def test_topics_do_not_shrink(broker: InProcessBroker, count: int) -> None:
    if not broker.services.metadata_cache.contains("two"):
        broker.create_topic("two", 2)
    ((error, message),) = grow(broker, ("two", count)).values()
    assert error == ErrorCode.INVALID_PARTITIONS
    assert message


def test_unknown_topic(broker: InProcessBroker) -> None:
    ((error, _),) = grow(broker, ("none", 2)).values()
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topic_about_to_be_deleted(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = type(broker.services.controller)
    monkeypatch.setattr(controller, "is_topic_queued_for_deletion", lambda self, topic: topic == "doomed")
    found = grow(broker, ("doomed", 2))
    assert found == {"doomed": (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")}


def test_only_the_controller_creates(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(broker.services.controller), "is_active", False)
    assert grow(broker, ("any", 2), ("any", 3)) == {"any": (ErrorCode.NOT_CONTROLLER, None)}
