from __future__ import annotations

import pytest

from odradek.broker.faults.matching import Facts, new_state
from odradek.broker.faults.rules.rule_texts import rule_of
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPIC_ID = bytes(15) + b"\x01"


def facts(
    request: Request,
    version: int = 4,
    *,
    client_id: str = "me",
    principal: str = "User:ANONYMOUS",
    connection: int = 1,
    of_session: list[tuple[str, int | None]] | None = None,
) -> Facts:
    return Facts(
        RequestHeader(ApiKey(request.API_KEY), version, 1, client_id),
        request,
        principal=principal,
        connection=connection,
        address=f"10.0.0.1:{connection}",
        topic_name={TOPIC_ID: "by-id"}.get,
        of_session=of_session or (),
    )


def fetch(topic: str, *indexes: int) -> FetchRequest:
    return FetchRequest(
        topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition=index) for index in indexes])]
    )


def fires(condition: dict[str, object], *requests: Facts, now_ms: int = 0) -> list[bool]:
    state = new_state(1, rule_of({"action": "drop", **condition}), 0)
    return [state.fires(each, now_ms) for each in requests]


HEARTBEAT = HeartbeatRequest(group_id="g")


@pytest.mark.parametrize(
    ("condition", "met", "missed"),
    [
        ({"api": "Fetch"}, facts(fetch("t", 0)), facts(HEARTBEAT)),
        ({"versions": "4+"}, facts(HEARTBEAT, 4), facts(HEARTBEAT, 3)),
        ({"topic": "t"}, facts(fetch("t", 0)), facts(fetch("u", 0))),
        ({"topic": "t", "partition": 1}, facts(fetch("t", 0, 1)), facts(fetch("t", 0))),
        ({"topic": "t"}, facts(MetadataRequest(topics=None)), facts(HEARTBEAT)),
        ({"topic": "t"}, facts(MetadataRequest(topics=[MetadataRequestTopic(name="t")])), facts(fetch("u", 1))),
        ({"topic": "by-id"}, facts(FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition()])])),
         facts(FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=[FetchPartition()])]))),
        ({"topic": "t"}, facts(FetchRequest(), of_session=[("t", 3)]), facts(FetchRequest())),
        ({"client_id": "me"}, facts(HEARTBEAT), facts(HEARTBEAT, client_id="you")),
        ({"principal": "User:a"}, facts(HEARTBEAT, principal="User:a"), facts(HEARTBEAT)),
        ({"connection": 2}, facts(HEARTBEAT, connection=2), facts(HEARTBEAT)),
        ({"connection": "10.0.0.1:2"}, facts(HEARTBEAT, connection=2), facts(HEARTBEAT)),
    ],
)  # fmt: skip
def test_a_condition_of_the_request(condition: dict[str, object], met: Facts, missed: Facts) -> None:
    assert fires(condition, met, missed) == [True, False]


def test_counts_are_of_requests_that_meet_the_other_conditions() -> None:
    other, mine = facts(HEARTBEAT, client_id="you"), facts(HEARTBEAT)
    assert fires({"client_id": "me", "nth": 2}, mine, other, mine, mine) == [False, False, True, False]
    assert fires({"every": 2}, *[mine] * 5) == [False, True, False, True, False]
    assert fires({"times": 2}, *[mine] * 4) == [True, True, False, False]
    assert fires({"enabled": False}, mine) == [False]


def test_a_seed_decides_about_probability() -> None:
    asked = [facts(HEARTBEAT)] * 200
    first = fires({"probability": 0.5, "seed": 1}, *asked)
    assert first == fires({"probability": 0.5, "seed": 1}, *asked)
    assert first != fires({"probability": 0.5, "seed": 2}, *asked)
    assert 60 < sum(first) < 140
    assert not any(fires({"probability": 0}, *asked))


@pytest.mark.parametrize(("now_ms", "expected"), [(999, False), (1_000, True), (2_000, True), (2_001, False)])
def test_a_rule_holds_for_a_time_of_the_broker(now_ms: int, expected: bool) -> None:
    assert fires({"after": "1s", "until": "2s"}, facts(HEARTBEAT), now_ms=now_ms) == [expected]


def test_an_action_without_a_place_in_the_answer_does_not_fire() -> None:
    produce = API[ApiKey.PRODUCE].request_type()()
    state = new_state(1, rule_of({"action": "error", "code": 6, "at": "top"}), 0)
    assert not state.fires(facts(produce), 0)  # an answer to Produce has no code at the top
    assert state.fires(facts(HEARTBEAT), 0)
    assert not new_state(1, rule_of({"action": "corrupt_crc"}), 0).fires(facts(HEARTBEAT), 0)


@pytest.mark.parametrize("at", ["entry", "partition"])
def test_an_error_of_topics_does_not_fire_for_a_metadata_without_topics(at: str) -> None:
    rule = rule_of({"action": "error", "code": 5, "at": at, "times": 1})
    none, one, every = ([], [MetadataRequestTopic(name="t")], None)
    state = new_state(1, rule, 0)
    assert [state.fires(facts(MetadataRequest(topics=topics)), 0) for topics in (none, one)] == [False, True]
    assert new_state(1, rule, 0).fires(facts(MetadataRequest(topics=every)), 0)
