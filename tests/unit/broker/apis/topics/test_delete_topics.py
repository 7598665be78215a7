"""DeleteTopics by name and by id."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from odradek.controller.admin.topic_admin import TopicResult
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeletableTopicResult
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE


def delete(broker: InProcessBroker, *topics: str | bytes, version: int = 6) -> list[DeletableTopicResult]:
    """Topics by name or, as bytes, by id."""
    if version < 6:
        fields: dict[str, object] = {"topic_names": list(topics)}
    else:
        fields = {
            "topics": [
                {"name": None, "topic_id": topic} if isinstance(topic, bytes) else {"name": topic} for topic in topics
            ]
        }
    request = build(ApiKey.DELETE_TOPICS, timeout_ms=1_000, **fields)
    return broker.call(request, version).responses  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("version", range(7))
def test_deleted_topic_is_gone_from_the_metadata(broker: InProcessBroker, version: int) -> None:
    name = f"v{version}"
    broker.create_topic(name)
    (result,) = delete(broker, name, version=version)
    assert (result.name, result.error_code, result.error_message) == (name, NONE, None)
    assert not broker.services.metadata_cache.contains(name)


def test_deletion_by_id_returns_the_name(broker: InProcessBroker) -> None:
    broker.create_topic("known")
    topic_id = broker.topic_id("known")
    (result,) = delete(broker, topic_id)
    assert (result.name, result.topic_id, result.error_code) == ("known", topic_id, NONE)


def test_unknown_topics(broker: InProcessBroker) -> None:
    by_name, by_id = delete(broker, "none", b"?" * 16)
    assert (by_name.name, by_name.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (by_id.name, by_id.topic_id, by_id.error_code) == (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


def test_the_id_of_a_topic_that_is_being_deleted(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata is gone; the controller knows it until the last replica is deleted."""
    controllership = broker.services.controller.controllership
    assert controllership is not None
    monkeypatch.setitem(controllership.context.topic_names, b"!" * 16, "doomed")
    (result,) = delete(broker, b"!" * 16)
    assert (result.name, result.topic_id) == ("doomed", b"!" * 16)
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_neither_name_nor_id(broker: InProcessBroker) -> None:
    (result,) = delete(broker, ZERO_UUID)
    assert (result.name, result.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_name_and_id_together_refuse_the_request_before_anything_is_deleted(broker: InProcessBroker) -> None:
    broker.create_topic("kept")
    both = {"name": "kept", "topic_id": broker.topic_id("kept")}
    request = build(ApiKey.DELETE_TOPICS, topics=[{"name": "kept"}, both], timeout_ms=1_000)
    results = broker.call(request, 6).responses  # type: ignore[attr-defined]
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert broker.services.metadata_cache.contains("kept")


def test_topic_named_twice_is_deleted_once(broker: InProcessBroker) -> None:
    broker.create_topic("twice")
    results = delete(broker, "twice", "twice")
    assert {result.error_code for result in results} == {NONE}


@pytest.mark.parametrize("version", [5, 6])
def test_only_the_last_mention_of_a_topic_tells_what_came_of_it(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Whether the mentions follow each other or not."""
    name = f"last-of-v{version}"
    broker.create_topic(name)

    async def fail(topics: Collection[str], **_: object) -> dict[str, TopicResult]:
        return {name: TopicResult(name=name, error_code=ErrorCode.REQUEST_TIMED_OUT) for name in topics}

    monkeypatch.setattr(broker.services.admin, "delete_topics", fail)
    named = [name, name, "none", "none", name, name]
    found = delete(broker, *named, version=version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [result.name for result in found] == named
    assert [result.error_code for result in found] == [
        NONE,
        NONE,
        unknown,
        unknown,
        NONE,
        ErrorCode.REQUEST_TIMED_OUT,
    ]


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_forbidden(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, version: int, error: ErrorCode
) -> None:
    monkeypatch.setattr(broker.services.config, "delete_topic_enable", False)
    (result,) = delete(broker, "any", version=version)
    assert (result.name, result.error_code) == ("any", error)


def test_only_the_controller_deletes(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(broker.services.controller), "is_active", False)
    (result,) = delete(broker, "any")
    assert (result.name, result.error_code) == ("any", ErrorCode.NOT_CONTROLLER)
