"""The partitions that a request names, each once."""

from __future__ import annotations

import pytest

from odradek.broker.apis.named_partitions import INDEXES_A_STEP, NamedPartitions, named_partitions
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.repeated_items import FEW
from odradek.timer.sliced_work import run_through


def named(*topics: tuple[str, list[int]]) -> NamedPartitions:
    return run_through(named_partitions(topics))


def test_they_come_in_the_order_of_the_first_mentions() -> None:
    found = named(("b", [2, 1, 2]), ("a", [0]), ("b", [3, 1]))
    expected = [("b", 2), ("b", 1), ("b", 3), ("a", 0)]
    assert list(found) == expected
    assert list(found) == expected, "they can be read again"
    assert isinstance(next(iter(found)), TopicPartition)


def test_a_topic_without_partitions_is_not_there() -> None:
    assert named(("a", []), ("b", [1]), ("a", [])).by_topic == {"b": [1]}


def test_of_many_partitions_nothing_is_copied() -> None:
    indexes = list(range(FEW + 1))
    assert named(("a", indexes)).by_topic["a"] is indexes


@pytest.mark.parametrize("count", [FEW, FEW + 1, 10 * FEW])
def test_the_request_stays_as_it_is(count: int) -> None:
    some, others = list(range(count)), [count - 1, count, count]
    assert list(named(("a", some), ("a", others)).by_topic["a"]) == list(range(count + 1))
    assert (len(some), len(others)) == (count, 3)


def test_many_are_looked_at_in_steps() -> None:
    count = 10 * FEW
    once, twice = list(range(count)), [*range(count), *range(count)]
    assert sum(1 for _ in named_partitions([("a", once)])) > count / INDEXES_A_STEP
    assert sum(1 for _ in named_partitions([("a", twice)])) > 4 * count / INDEXES_A_STEP
    assert sum(1 for _ in named_partitions([("", [])] * count)) >= count
