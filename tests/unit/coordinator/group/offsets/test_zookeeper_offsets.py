from __future__ import annotations

from odradek.coordinator.group.offsets.offset_api import Outcome
from odradek.coordinator.group.offsets.zookeeper_offsets import AT_ONCE, commit_to_tree, fetch_from_tree
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import run_through
from tests.support.in_process.coordinator_log import InMemoryConsumerOffsetTree

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, commit_timestamp_ms=0)


def request(*indexes: int) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=list(indexes))] if indexes else []
    )


def test_a_commit_is_answered_when_all_its_offsets_are_written() -> None:
    tree = InMemoryConsumerOffsetTree()
    tree.hold = True
    answers: list[Outcome] = []
    run_through(commit_to_tree(tree, "g", {T0: at(5), T1: at(6)}, {}, answers.append))
    assert answers == []
    tree.release()
    assert answers[0] == {T0: ErrorCode.NONE, T1: ErrorCode.NONE}
    assert tree.offsets == {("g", T0): 5, ("g", T1): 6}
    assert len(answers) == 1


def test_refused_offsets_are_not_written() -> None:
    tree = InMemoryConsumerOffsetTree()
    answers: list[Outcome] = []
    refused = {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    run_through(commit_to_tree(tree, "g", {T0: at(5), T1: at(6)}, refused, answers.append))
    assert answers[0] == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE, T1: ErrorCode.NONE}
    assert tree.offsets == {("g", T1): 6}


def test_a_commit_of_nothing_is_answered_once() -> None:
    answers: list[Outcome] = []
    run_through(commit_to_tree(InMemoryConsumerOffsetTree(), "g", {}, {}, answers.append))
    assert answers == [{}]


def test_a_fetch_is_answered_when_all_its_offsets_are_read() -> None:
    tree = InMemoryConsumerOffsetTree()
    tree.offsets["g", T1] = 6
    tree.hold = True
    answers: list[OffsetFetchResponse] = []
    run_through(fetch_from_tree(tree, request(1, 0), answers.append))
    assert answers == []
    tree.release()
    (topic,) = answers[0].topics
    assert [(one.partition_index, one.committed_offset, one.error_code) for one in topic.partitions] == [
        (1, 6, ErrorCode.NONE),
        (0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_of_a_fetch_so_many_offsets_are_read_at_a_time() -> None:
    tree = InMemoryConsumerOffsetTree()
    tree.hold = True
    answers: list[OffsetFetchResponse] = []
    run_through(fetch_from_tree(tree, request(*range(AT_ONCE + 1)), answers.append))
    assert tree.waiting == AT_ONCE
    tree.release()
    assert tree.waiting == 1
    tree.release()
    assert len(answers[0].topics[0].partitions) == AT_ONCE + 1


def test_of_a_commit_so_many_offsets_are_written_at_a_time() -> None:
    tree = InMemoryConsumerOffsetTree()
    tree.hold = True
    answers: list[Outcome] = []
    offsets = {TopicPartition("t", index): at(index) for index in range(AT_ONCE + 1)}
    run_through(commit_to_tree(tree, "g", offsets, {}, answers.append))
    assert tree.waiting == AT_ONCE
    tree.release()
    assert tree.waiting == 1
    tree.release()
    assert answers == [dict.fromkeys(offsets, ErrorCode.NONE)]


def test_operations_that_end_at_once_do_not_nest() -> None:
    answers: list[OffsetFetchResponse] = []
    run_through(fetch_from_tree(InMemoryConsumerOffsetTree(), request(*range(20 * AT_ONCE)), answers.append))
    assert len(answers[0].topics[0].partitions) == 20 * AT_ONCE


def test_a_fetch_answers_each_partition_once_with_the_first_mention_of_its_topic() -> None:
    topics = [("a", [1, 0, 1]), ("b", []), ("c", [5]), ("a", [2, 0])]
    group = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name=name, partition_indexes=some) for name, some in topics]
    )
    answers: list[OffsetFetchResponse] = []
    run_through(fetch_from_tree(InMemoryConsumerOffsetTree(), group, answers.append))
    assert [(topic.name, [part.partition_index for part in topic.partitions]) for topic in answers[0].topics] == [
        ("a", [1, 0, 2]),
        ("c", [5]),
    ]


def test_a_fetch_of_nothing_is_answered_once() -> None:
    answers: list[OffsetFetchResponse] = []
    run_through(fetch_from_tree(InMemoryConsumerOffsetTree(), request(), answers.append))
    assert [list(answer.topics) for answer in answers] == [[]]
