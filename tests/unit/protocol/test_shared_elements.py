"""Equal elements in a row become one object; others stay as they are."""

from __future__ import annotations

from odradek.protocol.messages.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderTopicResult
from odradek.protocol.shared_elements import append_shared, shared


def partitions(*indexes: int) -> list[EpochEndOffset]:
    return [EpochEndOffset(partition=index) for index in indexes]


def test_equal_elements_in_a_row_are_one_object() -> None:
    appended: list[EpochEndOffset] = []
    for element in partitions(0, 0, 0, 1, 0):
        append_shared(appended, element)
    for found in (appended, list(shared(partitions(0, 0, 0, 1, 0)))):
        assert found == partitions(0, 0, 0, 1, 0)
        assert found[0] is found[1] is found[2]
        assert found[2] is not found[4]


def test_elements_with_a_filled_array_are_not_compared() -> None:
    found: list[OffsetForLeaderTopicResult] = []
    for inner in ([], [], partitions(0), partitions(0), []):
        append_shared(found, OffsetForLeaderTopicResult(topic="t", partitions=inner), inner)
    assert [len(topic.partitions) for topic in found] == [0, 0, 1, 1, 0]
    assert found[0] is found[1]
    assert found[2] is not found[3]


def test_nothing_is_shared_of_nothing() -> None:
    assert list(shared(())) == []
    assert list(shared([None, None])) == [None, None]
