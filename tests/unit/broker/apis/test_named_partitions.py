"""The partitions that a request names, each once, and their answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import index, itemgetter

import pytest

from odradek.broker.apis.named_partitions import (
    PARTITIONS_A_STEP,
    AnsweredPartitions,
    NamedPartitions,
    common_outcome_or_each,
    named_partitions,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.repeated_items import FEW
from odradek.timer.sliced_work import run_through


def named(*topics: tuple[str, Sequence[int]]) -> NamedPartitions[int]:
    return run_through(named_partitions(topics, index))


def pair(topic: str, partitions: Sequence[str]) -> tuple[str, list[str]]:
    return topic, list(partitions)


def answer(partition: int, outcome: int) -> str:
    return f"{partition}: {outcome}"


def test_they_come_in_the_order_of_the_first_mentions() -> None:
    found = named(("b", [2, 1, 2]), ("a", [0]), ("b", [3, 1]))
    expected = [("b", 2), ("b", 1), ("b", 3), ("a", 0)]
    assert list(found) == expected
    assert list(found) == expected, "they can be read again"
    assert isinstance(next(iter(found)), TopicPartition)


def test_a_topic_without_partitions_is_not_there() -> None:
    found = named(("a", []), ("c", []), ("b", [1]), ("a", []))
    assert list(found.topics()) == [("b", [1])]
    assert found.topic_count == 1


def test_the_last_mention_of_a_partition_counts() -> None:
    topics = [("a", [(0, "x"), (1, "y"), (0, "z")]), ("b", [(0, "b")]), ("a", [(1, "w")])]
    found = run_through(named_partitions(topics, itemgetter(0)))
    assert list(found.partitions()) == [(("a", 0), (0, "z")), (("a", 1), (1, "w")), (("b", 0), (0, "b"))]


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1, 10 * FEW])
def test_of_partitions_that_are_named_once_nothing_is_copied(count: int) -> None:
    indexes = list(range(count))
    ((_, found),) = named(("a", indexes), ("b", [])).topics()
    assert found is indexes


@pytest.mark.parametrize("count", [FEW, FEW + 1, 10 * FEW])
def test_the_request_stays_as_it_is(count: int) -> None:
    some, others = list(range(count)), [count - 1, count, count]
    assert list(named(("a", some), ("a", others)).topics()) == [("a", list(range(count + 1)))]
    assert (len(some), len(others)) == (count, 3)


@pytest.mark.parametrize("seed", range(50))
def test_they_are_what_a_dictionary_has(seed: int) -> None:
    choices = random.Random(seed)
    of_a_topic = choices.choice([3, 3, 3 * FEW])
    topics = [
        (
            choices.choice("abcdef"),
            [(choices.randrange(of_a_topic), number) for _ in range(choices.randrange(of_a_topic))],
        )
        for number in range(choices.randrange(12))
    ]
    expected: dict[str, dict[int, int]] = {}
    for name, partitions in topics:
        if partitions:
            expected.setdefault(name, {}).update(partitions)
    found = run_through(named_partitions(topics, itemgetter(0)))
    assert [(name, list(partitions)) for name, partitions in found.topics()] == [
        (name, list(partitions.items())) for name, partitions in expected.items()
    ]
    assert found.topic_count == len(expected)
    distinct = sum(map(len, expected.values()))
    assert found.are_as_requested == (
        all(partitions for _, partitions in topics)
        and len(topics) == len(expected)
        and sum(len(partitions) for _, partitions in topics) == distinct
    )


def test_many_are_looked_at_in_steps() -> None:
    count = 10 * FEW
    once, twice = list(range(count)), [*range(count), *range(count)]
    assert sum(1 for _ in named_partitions([("a", once)], index)) > count / PARTITIONS_A_STEP
    assert sum(1 for _ in named_partitions([("a", twice)], index)) > 4 * count / PARTITIONS_A_STEP
    assert sum(1 for _ in named_partitions([("", [])] * count, index)) >= count
    assert sum(1 for _ in named_partitions([("a", once), ("a", once)], index)) > 6 * count / PARTITIONS_A_STEP


def test_an_answer_is_made_of_what_came_of_each() -> None:
    found = AnsweredPartitions(named(("b", [2, 1]), ("a", [0]), ("b", [3, 1])), [7, 8, 9, 10], pair, answer)
    expected = [("b", ["2: 7", "1: 8", "3: 9"]), ("a", ["0: 10"])]
    assert len(found) == 2
    assert list(found) == expected
    assert list(found) == expected, "they can be read again"
    assert found[1] == expected[1]


@pytest.mark.parametrize(
    ("topics", "outcomes", "expected"),
    [
        ([("a", [0, 1]), ("b", [0])], [3, 3, 3], 3),
        ([("a", [0, 1]), ("b", [0])], [3, 3, 0], None),
        ([("a", [0, 0])], [3], None),
        ([("a", [0]), ("a", [1])], [3, 3], None),
        ([("a", [0]), ("b", [])], [3], None),
        ([("a", list(range(FEW)))], [3] * FEW, 3),
        ([("a", list(range(FEW + 1)))], [3] * (FEW + 1), None),
        ([], [], None),
    ],
)
def test_a_common_outcome_is_one_of_all_that_the_request_names(
    topics: list[tuple[str, list[int]]], outcomes: list[int], expected: int | None
) -> None:
    found = common_outcome_or_each(named(*topics), outcomes, pair, answer)
    assert (found if isinstance(found, int) else None) == expected
