from __future__ import annotations

from odradek.protocol.topic_partition import TopicPartition


def test_prints_as_a_log_directory_is_named() -> None:
    assert str(TopicPartition("orders.eu", 3)) == "orders.eu-3"


def test_orders_by_topic_then_by_number() -> None:
    partitions = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert sorted(partitions) == [("a", 2), ("a", 10), ("b", 0)]
