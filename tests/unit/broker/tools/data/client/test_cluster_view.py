from __future__ import annotations

from odradek.broker.tools.data.client.cluster_view import ClusterView
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def response(leader: int, epoch: int, topic_id: bytes = b"i" * 16, code: int = 0) -> MetadataResponse:
    partitions = [
        MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch),
        MetadataResponsePartition(partition_index=1, leader_id=-1, leader_epoch=epoch),
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2)],
        topics=[MetadataResponseTopic(name="t", topic_id=topic_id, partitions=partitions, error_code=code)],
    )


def test_leaders() -> None:
    view = ClusterView()
    assert view.leader(A) is None
    view.update(response(1, 5))
    assert (view.leader(A), view.leader(B)) == (1, None)
    assert (view.partition_count("t"), view.available("t"), view.error("t")) == (2, [0], 0)
    view.update(response(9, 6))
    assert view.leader(A) is None, "its broker is not there"


def test_a_stale_leader_is_ignored_but_not_that_of_a_new_topic() -> None:
    view = ClusterView()
    view.update(response(1, 5))
    view.update(response(2, 4))
    assert view.leader(A) == 1
    view.update(response(2, 0, topic_id=b"j" * 16))
    assert view.leader(A) == 2


def test_topics_that_are_not_there() -> None:
    view = ClusterView()
    assert view.error("t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (view.partition_count("t"), view.available("t")) == (0, ())
    view.update(response(1, 5, code=ErrorCode.LEADER_NOT_AVAILABLE))
    assert (view.partition_count("t"), view.error("t")) == (0, ErrorCode.LEADER_NOT_AVAILABLE)
    view.forget_missing(["other"])
    assert "t" not in view.topics


def test_nothing_stays_of_a_topic_that_is_forgotten() -> None:
    view = ClusterView()
    view.update(response(1, 5))
    view.forget_missing(["t"])
    assert view.leader(A) == 1
    view.forget_missing([])
    assert (view.leader(A), view.available("t"), view.topic_id("t")) == (None, (), bytes(16))
    assert view.name_of("", b"i" * 16) == ""


def test_names_and_ids() -> None:
    view = ClusterView()
    view.update(response(1, 5))
    assert view.topic_id("t") == b"i" * 16
    assert [view.name_of("", b"i" * 16), view.name_of("t", bytes(16)), view.name_of("", b"?" * 16)] == ["t", "t", ""]
