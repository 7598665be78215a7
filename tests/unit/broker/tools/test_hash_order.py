from __future__ import annotations

import pytest

from odradek.broker.tools.hash_order import order_of_names, order_of_partitions
from odradek.protocol.topic_partition import TopicPartition

SEEN_IN_SCALA = {
    ("orders:3",): "orders-0,orders-1,orders-2",
    ("orders:13", "b:5"): "orders-7,b-3,orders-8,b-2,orders-9,b-1,orders-10,b-0,orders-11,orders-12,orders-0,orders-1,"
    "orders-2,orders-3,orders-4,orders-5,orders-6,b-4",
    ("a:1", "b:1", "c:1", "dd:20"): "dd-1,dd-0,a-0,b-0,c-0,dd-19,dd-18,dd-17,dd-16,dd-15,dd-14,dd-13,dd-12,dd-11,"
    "dd-10,dd-9,dd-8,dd-7,dd-6,dd-5,dd-4,dd-3,dd-2",
    ("a:4", "bb:4", "ccc:4", "dddd:4"): "a-2,bb-1,ccc-3,a-1,bb-0,a-0,ccc-1,ccc-2,ccc-0,dddd-1,dddd-0,dddd-3,dddd-2,"
    "bb-3,a-3,bb-2",
}
"""Of a mutable.Set to which the partitions 0, 1, ... of each topic were added as an immutable Set (Scala 2.13.15)."""


@pytest.mark.parametrize(("topics", "expected"), SEEN_IN_SCALA.items(), ids=map(" ".join, SEEN_IN_SCALA))
def test_partitions_come_as_scala_gives_them(topics: tuple[str, ...], expected: str) -> None:
    added = []
    for topic in topics:
        name, count = topic.split(":")
        added.append([TopicPartition(name, partition) for partition in range(int(count))])
    assert ",".join(map(str, order_of_partitions(added))) == expected


def test_names_come_each_once() -> None:
    names = [f"/data/topic-{n}/00000000000000000000.log" for n in range(30)]
    assert sorted(order_of_names([*names, *names])) == sorted(names)
    assert order_of_names(names) == order_of_names(reversed(names)), "their order does not decide"
    assert order_of_names(["b", "a"]) == ["a", "b"]
