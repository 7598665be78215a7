"""Topics of requests by schema, for each API that names any."""

from __future__ import annotations

import pytest

from odradek.broker.faults.request_topics import index_of, means_all_topics, select, topic_of, topics_of
from odradek.protocol.api import ApiKey
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import PartitionProduceResponse, TopicProduceResponse
from tests.support.wire.requests import build

TOPIC_ID = bytes(15) + b"\x01"
NAMED = {TOPIC_ID: "by-id"}.get

REQUESTS = [
    build(
        ApiKey.PRODUCE,
        topic_data=[
            {"name": "a", "partition_data": [{"index": 0}, {"index": 1}]},
            {"name": "b", "partition_data": [{"index": 0}]},
        ],
    ),
    build(
        ApiKey.OFFSET_FETCH,
        groups=[
            {
                "group_id": "g",
                "topics": [{"name": "a", "partition_indexes": [0, 1]}, {"name": "b", "partition_indexes": [0]}],
            }
        ],
    ),
    build(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        transactions=[
            {"transactional_id": "x", "topics": [{"name": "a", "partitions": [0, 1]}]},
            {"transactional_id": "y", "topics": [{"name": "b", "partitions": [0]}]},
        ],
    ),
    build(
        ApiKey.WRITE_TXN_MARKERS,
        markers=[
            {
                "producer_id": 1,
                "topics": [{"name": "a", "partition_indexes": [0, 1]}, {"name": "b", "partition_indexes": [0]}],
            }
        ],
    ),
    build(
        ApiKey.ELECT_LEADERS,
        topic_partitions=[{"topic": "a", "partitions": [0, 1]}, {"topic": "b", "partitions": [0]}],
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_partitions_are_found_and_selected(request_: object) -> None:
    assert list(topics_of(request_, NAMED)) == [("a", 0), ("a", 1), ("b", 0)]  # type: ignore[arg-type]
    chosen, count = select(request_, lambda topic, index: (topic, index) == ("a", 1), NAMED)  # type: ignore[type-var]
    assert (count, list(topics_of(chosen, NAMED))) == (1, [("a", 1)])  # type: ignore[arg-type]
    rest, count = select(request_, lambda topic, index: (topic, index) != ("a", 1), NAMED)  # type: ignore[type-var]
    assert (count, list(topics_of(rest, NAMED))) == (2, [("a", 0), ("b", 0)])  # type: ignore[arg-type]
    assert list(topics_of(request_, NAMED)) == [("a", 0), ("a", 1), ("b", 0)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "request_",
    [
        build(ApiKey.CREATE_TOPICS, topics=[{"name": "a", "configs": [{"name": "cleanup.policy"}]}, {"name": "b"}]),
        build(ApiKey.DELETE_TOPICS, topic_names=["a", "b"]),
        build(ApiKey.METADATA, topics=[{"name": "a"}, {"name": "b"}]),
        build(ApiKey.CREATE_PARTITIONS, topics=[{"name": "a", "count": 3}, {"name": "b", "count": 3}]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_topics_without_partitions(request_: object) -> None:
    assert list(topics_of(request_, NAMED)) == [("a", None), ("b", None)]  # type: ignore[arg-type]
    chosen, count = select(request_, lambda topic, index: topic == "b", NAMED)  # type: ignore[type-var]
    assert (count, list(topics_of(chosen, NAMED))) == (1, [("b", None)])  # type: ignore[arg-type]


def test_names_that_are_no_topics() -> None:
    join = build(ApiKey.JOIN_GROUP, protocols=[{"name": "range", "metadata": b""}])
    configs = build(ApiKey.DESCRIBE_CONFIGS, resources=[{"resource_type": 2, "resource_name": "a"}])
    assert [*topics_of(join, NAMED), *topics_of(configs, NAMED)] == []


def test_topics_by_id() -> None:
    request = build(
        ApiKey.FETCH,
        topics=[
            {"topic_id": TOPIC_ID, "partitions": [{"partition": 2}]},
            {"topic_id": b"\x09" * 16, "partitions": [{"partition": 3}]},
        ],
    )
    assert list(topics_of(request, NAMED)) == [("by-id", 2)]


def test_null_means_all_topics() -> None:
    assert means_all_topics(MetadataRequest(topics=None), 9)
    assert means_all_topics(MetadataRequest(topics=[]), 0)
    assert not means_all_topics(MetadataRequest(topics=[]), 9)
    assert means_all_topics(build(ApiKey.OFFSET_FETCH, groups=[{"group_id": "g", "topics": None}]), 8)


def test_entries_of_answers() -> None:
    assert topic_of(TopicProduceResponse(name="a"), NAMED) == "a"
    assert index_of(PartitionProduceResponse(index=3)) == 3
    assert topic_of(PartitionProduceResponse(index=3), NAMED) is None
