"""Outcomes of partitions read like lists of topics with lists of partitions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.protocol.codec.arrays.outcomes_by_topic import OutcomesByTopic

Partition = tuple[int, int]
Topic = tuple[str, Sequence[Partition]]


def outcomes(*named: tuple[str, int, int]) -> OutcomesByTopic[Partition, Topic]:
    found = OutcomesByTopic[Partition, Topic](lambda name, partitions: (name, partitions), lambda *pair: pair)
    for topic, index, code in named:
        found.add(topic, index, code)
    return found


def shown(topics: Sequence[Topic]) -> list[tuple[str, list[Partition]]]:
    return [(name, list(partitions)) for name, partitions in topics]


def test_topics_and_partitions_keep_the_order_in_which_they_came() -> None:
    found = outcomes(("a", 7, 3), ("b", 0, 0), ("a", 1, -1), ("c", 2_000_000_000, 5), ("b", 0, 6), ("a", 1, 87))
    expected = [("a", [(7, 3), (1, -1), (1, 87)]), ("b", [(0, 0), (0, 6)]), ("c", [(2_000_000_000, 5)])]
    assert shown(found) == shown(found) == expected
    assert len(found) == 3
    assert [len(partitions) for _, partitions in found] == [3, 2, 1]
    assert shown(outcomes()) == []


def test_single_elements_and_slices() -> None:
    found = outcomes(("a", 7, 3), ("b", 0, 0), ("a", 1, -1))
    name, partitions = found[-2]
    assert (name, partitions[0], partitions[-1], partitions[1:]) == ("a", (7, 3), (1, -1), [(1, -1)])
    assert shown(found[1:]) == [("b", [(0, 0)])]
    for index in (2, -3):
        with pytest.raises(IndexError):
            found[index]
        with pytest.raises(IndexError):
            partitions[index]
