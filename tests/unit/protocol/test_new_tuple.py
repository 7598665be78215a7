"""A NamedTuple without the function of Python that its class calls."""

from __future__ import annotations

from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.topic_partition import TopicPartition


def test_it_is_the_same_as_from_its_class() -> None:
    made = new_tuple(TopicPartition, ("t", 3))
    assert type(made) is TopicPartition
    assert made == TopicPartition("t", 3)
    assert (made.topic, made.partition, str(made)) == ("t", 3, "t-3")
