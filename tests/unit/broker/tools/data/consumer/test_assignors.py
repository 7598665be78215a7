from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.tools.data.consumer.assignors import ASSIGNORS, assignor_names
from odradek.broker.tools.data.consumer.member_metadata import Subscriber
from odradek.protocol.topic_partition import TopicPartition

A, B = frozenset({"a"}), frozenset({"a", "b"})


def assigned(assignor: str, members: list[Subscriber], counts: dict[str, int]) -> dict[str, str]:
    found = ASSIGNORS[assignor](members, counts)
    return {member: " ".join(map(str, partitions)) for member, partitions in found.items()}


def test_range_as_in_java() -> None:
    members = [Subscriber("c2", None, B), Subscriber("c1", None, B)]
    assert assigned("range", members, {"a": 3, "b": 3}) == {"c1": "a-0 a-1 b-0 b-1", "c2": "a-2 b-2"}
    assert assigned("range", [*members, Subscriber("c0", None, A)], {"a": 2, "b": 1}) == {
        "c0": "a-0",
        "c1": "a-1 b-0",
        "c2": "",
    }


def test_round_robin_as_in_java() -> None:
    members = [Subscriber("c1", None, B), Subscriber("c0", None, A)]
    assert assigned("roundrobin", members, {"b": 2, "a": 3}) == {"c0": "a-0 a-2", "c1": "a-1 b-0 b-1"}


def test_static_members_come_first() -> None:
    members = [Subscriber("a", None, A), Subscriber("z", "i2", A), Subscriber("y", "i3", A)]
    assert assigned("range", members, {"a": 2}) == {"z": "a-0", "y": "a-1", "a": ""}


def test_topics_that_nobody_wants_or_that_are_gone() -> None:
    for assignor in ASSIGNORS:
        assert assigned(assignor, [Subscriber("c", None, B)], {"a": 1, "other": 5}) == {"c": "a-0"}


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 7)),
    st.lists(st.frozensets(st.sampled_from("abc")), min_size=1, max_size=5),
    st.sampled_from(sorted(ASSIGNORS)),
)
def test_each_partition_goes_to_one_subscriber(
    counts: dict[str, int], topics: list[frozenset[str]], assignor: str
) -> None:
    members = [Subscriber(f"m{index}", None, wanted) for index, wanted in enumerate(topics)]
    found = ASSIGNORS[assignor](members, counts)
    everything = [key for partitions in found.values() for key in partitions]
    wanted = {topic for member in members for topic in member.topics}
    assert sorted(everything) == sorted(
        TopicPartition(topic, index) for topic, count in counts.items() if topic in wanted for index in range(count)
    )
    assert all(key.topic in member.topics for member in members for key in found[member.member_id])


def test_names_of_librdkafka_and_classes_of_java() -> None:
    assert assignor_names("cooperative-sticky") == ("cooperative-sticky",)
    package = "org.apache.kafka.clients.consumer"
    assert assignor_names(f"{package}.RangeAssignor, {package}.CooperativeStickyAssignor,range") == (
        "range",
        "cooperative-sticky",
    )
    assert assignor_names("org.apache.kafka.clients.consumer.StickyAssignor,range") == ("sticky", "range")
    with pytest.raises(ValueError, match="'uniform' is no assignor that is known here"):
        assignor_names("range,uniform")
