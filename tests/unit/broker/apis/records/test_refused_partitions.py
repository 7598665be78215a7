"""A mapping of refused partitions is a dictionary that needs less memory."""

from __future__ import annotations

import random

import pytest

from odradek.broker.apis.records.refused_partitions import RefusedPartitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

CODES = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_dictionary(seed: int) -> None:
    choices = random.Random(seed)
    found, expected = RefusedPartitions(), dict[TopicPartition, ErrorCode]()
    for _ in range(200):
        topic_partition = TopicPartition(choices.choice("abcd"), choices.randrange(3))
        if choices.random() < 0.3:
            assert found.pop(topic_partition, None) == expected.pop(topic_partition, None)
        else:
            found[topic_partition] = expected[topic_partition] = choices.choice(CODES)
        assert found == expected
        assert len(found) == len(expected) == len(list(found))
        assert (topic_partition in found) == (topic_partition in expected)
        assert all(isinstance(each, TopicPartition) for each in found)


def test_topics_and_their_partitions_stay_in_order() -> None:
    found = RefusedPartitions()
    for name, index in [("b", 2), ("a", 0), ("b", 1), ("b", 2)]:
        found[TopicPartition(name, index)] = ErrorCode.INVALID_RECORD
    assert list(found) == [("b", 2), ("b", 1), ("a", 0)]


def test_codes_may_be_changed_while_it_is_read() -> None:
    found = RefusedPartitions()
    for name, index in [("a", 0), ("a", 1), ("b", 0)]:
        found[TopicPartition(name, index)] = ErrorCode.INVALID_RECORD
    for topic_partition in found:
        found[topic_partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert set(found.values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
