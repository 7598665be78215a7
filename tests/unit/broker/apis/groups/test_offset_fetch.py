"""OffsetFetch of many groups: one that is named many times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.controller.model.acls import AclOperation
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.transcripts.rights import group, topic
from tests.support.wire.requests import build


@pytest.fixture
def restricted(broker: InProcessBroker) -> Iterator[InProcessBroker]:
    """Clients may describe the group `g` and the topic `seen`."""
    describe = AclOperation.DESCRIBE
    broker.services.authorizer = ScriptedAuthorizer(group(describe, "g"), topic(describe, "seen"))
    yield broker
    broker.services.authorizer = None


@pytest.fixture(autouse=True)
def coordinator(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("__consumer_offsets"):
        broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
        assert broker.settle(lambda: broker.services.metadata_cache.contains("__consumer_offsets"))


def fetched(broker: InProcessBroker, *mentions: list[str] | None) -> list[OffsetFetchResponseGroup]:
    """The answers to mentions of the group `g`, each with its topics."""
    groups = [
        {"group_id": "g", "topics": None if names is None else [{"name": n, "partition_indexes": [0]} for n in names]}
        for names in mentions
    ]
    response = broker.call(build(ApiKey.OFFSET_FETCH, groups=groups), 9)
    assert isinstance(response, OffsetFetchResponse)
    return response.groups


def test_each_mention_gets_the_refusals_of_its_own_topics(restricted: InProcessBroker) -> None:
    mentions = [["a"], ["b"], [], ["seen"], ["c", "seen"], []]
    answers = fetched(restricted, *mentions)
    assert [[t.name for t in answer.topics] for answer in answers] == [["a"], ["b"], [], ["seen"], ["seen", "c"], []]
    for answer in answers:
        assert (answer.group_id, answer.error_code) == ("g", ErrorCode.NONE)
        for found in answer.topics:
            refused = ErrorCode.NONE if found.name == "seen" else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert [part.error_code for part in found.partitions] == [refused]


def test_mentions_without_topics_and_with_all_of_them(broker: InProcessBroker) -> None:
    answers = fetched(broker, [], [], None, None, ["seen"])
    assert [[t.name for t in answer.topics] for answer in answers] == [[], [], [], [], ["seen"]]
