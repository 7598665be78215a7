from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.client.admin_client import CommandFailed
from odradek.broker.tools.admin.reassignment.reassignment_plan import (
    Move,
    Plan,
    Replica,
    Throttles,
    format_plan,
    moves,
    parse_partitions,
    parse_plan,
    parse_topics,
    throttles,
)
from odradek.protocol.topic_partition import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def plan(*partitions: dict[str, object], **rest: object) -> str:
    return json.dumps({"version": 1, "partitions": partitions, **rest})


def entry(topic: str, partition: int, *replicas: int, **rest: object) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **rest}


def test_a_plan_has_the_target_brokers_and_directories() -> None:
    text = plan(entry("t", 1, 3, 1, log_dirs=["any", "/data"]), entry("u", 0, 2))
    assert parse_plan(text) == Plan({T1: [3, 1], U0: [2]}, {Replica(1, T1): "/data"})
    assert parse_plan(text.replace('"version": 1, ', "")) == parse_plan(text)


def test_a_written_plan_can_be_read_and_is_what_kafka_writes() -> None:
    text = format_plan({U0: [2], T0: (1, 2)})
    assert text == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},'
        '{"topic":"u","partition":0,"replicas":[2],"log_dirs":["any"]}]}'
    )
    assert parse_plan(text) == Plan({T0: [1, 2], U0: [2]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (plan(), "list cannot be empty"),
        ("{}", "list cannot be empty"),
        (plan(entry("t", 0)), "Partition replica list cannot be empty"),
        (plan(entry("t", 0, 1), entry("t", 0, 2)), "duplicate topic partitions: t-0"),
        (plan(entry("t", 0, 1, 2, 1)), "t-0 contains multiple entries for 1"),
        (plan(entry("t", 0, 1, log_dirs=[])), "different from size of log dirs"),
        (plan(entry("t", 0, 1), version=2), "Not supported version field value 2"),
        (plan({"topic": "t", "partition": 0}), "not a list of partitions and replicas"),
        (plan({"topic": "t", "partition": "0", "replicas": [1]}), "not a list of partitions and replicas"),
        (plan({"topic": "t", "partition": 0, "replicas": ["1"]}), "not a list of partitions and replicas"),
        ("[]", "not a list of partitions and replicas"),
        ("no json", "not a list of partitions and replicas"),
    ],
)
def test_invalid_plan_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CommandFailed, match=reason):
        parse_plan(text)


def test_topics_to_move() -> None:
    assert parse_topics('{"version": 1, "topics": [{"topic": "t"}, {"topic": "u"}]}') == ["t", "u"]
    for text in ('{"topics": [{"topic": "t"}, {"topic": "t"}]}', '{"topics": [1]}', '{"topics": [{}]}', "{]"):
        with pytest.raises(CommandFailed):
            parse_topics(text)


def test_partitions_to_elect() -> None:
    text = json.dumps({"partitions": [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 0}]})
    assert parse_partitions(text) == [T1, T0]
    for bad in (text.replace("1", "0"), "{}", '{"partitions": [{"topic": "t"}]}'):
        with pytest.raises(CommandFailed):
            parse_partitions(bad)


def test_replicas_move_from_their_brokers_to_new_brokers() -> None:
    current = {T0: [1, 2], U0: [1]}
    assert moves({}, {T0: [2, 3], U0: [1]}, current) == {
        T0: Move(frozenset({1, 2}), frozenset({3})),
        U0: Move(frozenset({1}), frozenset()),
    }


def test_ongoing_moves_keep_their_sources() -> None:
    ongoing = {T0: Move(frozenset({1, 2}), frozenset({3})), U0: Move(frozenset({5}), frozenset({6}))}
    assert moves(ongoing, {T0: [4, 3]}, {T0: [1, 2, 3]}) == {
        T0: Move(frozenset({1, 2}), frozenset({3, 4})),
        U0: Move(frozenset({5}), frozenset({6})),
    }


def test_sources_are_throttled_as_leaders_and_destinations_as_followers() -> None:
    moving = {
        T0: Move(frozenset({1, 2}), frozenset({3})),
        T1: Move(frozenset({2}), frozenset({2, 4})),
        U0: Move(frozenset({1}), frozenset()),
    }
    assert throttles(moving) == Throttles({"t": "0:1,0:2,1:2", "u": "0:1"}, {"t": "0:3,1:4", "u": ""}, [1, 2, 3, 4])
