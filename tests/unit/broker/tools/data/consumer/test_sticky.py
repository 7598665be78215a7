from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.tools.data.consumer.member_metadata import Claim, Subscriber
from odradek.broker.tools.data.consumer.sticky import assign_cooperative_sticky
from odradek.protocol.topic_partition import TopicPartition

# Beside Java's assignor: tests/golden/test_sticky_assignors.py.

T = frozenset({"t"})


def keys(*partitions: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", partition) for partition in partitions)


def member(name: str, *owned: int, generation: int = 1) -> Subscriber:
    return Subscriber(name, None, T, Claim(keys(*owned), generation))


def assigned(*members: Subscriber, count: int = 4) -> dict[str, str]:
    found = assign_cooperative_sticky(members, {"t": count})
    return {name: " ".join(str(key.partition) for key in share) for name, share in found.items()}


def test_a_partition_that_moves_is_given_in_the_generation_after() -> None:
    assert assigned(member("a"), member("b")) == {"a": "0 2", "b": "1 3"}
    assert assigned(member("a", 0, 2), member("b", 1, 3), member("c", generation=-1)) == {"a": "0", "b": "1 3", "c": ""}
    assert assigned(member("a", 0), member("b", 1, 3), member("c")) == {"a": "0", "b": "1 3", "c": "2"}


def test_partitions_of_a_member_that_has_gone() -> None:
    assert assigned(member("a", 0), member("b", 1, 3)) == {"a": "0 2", "b": "1 3"}


def test_of_two_claims_the_one_of_the_later_generation_counts() -> None:
    assert assigned(member("a", 0, 1, 2, generation=3), member("b", 2, 3, generation=4)) == {"a": "0 1", "b": "2 3"}
    assert assigned(member("a", 0, 1, 2), member("b", 2, 3)) == {"a": "0 1", "b": "3"}, "2 is revoked by both"


def test_topics_and_partitions_that_are_gone() -> None:
    gone = Subscriber("a", None, T, Claim(keys(0, 9) | {TopicPartition("gone", 0)}, 1))
    assert assigned(gone, count=2) == {"a": "0 1"}
    unsubscribed = Subscriber("a", None, frozenset(), Claim(keys(0), 1))
    assert assigned(unsubscribed, member("b"), count=2) == {"a": "", "b": "1"}, "0 has to be revoked first"


@given(
    st.lists(
        st.tuples(st.frozensets(st.sampled_from("xyz"), min_size=1), st.integers(0, 1000)), min_size=1, max_size=6
    ),
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 6), min_size=1),
)
def test_it_ends_in_shares_that_stay(wanted: list[frozenset[str]], counts: dict[str, int]) -> None:
    """After at most a few generations all partitions are given and the assignment is repeated."""
    claims = [Claim()] * len(wanted)
    for generation in range(4):
        members = [
            Subscriber(f"m{index}", None, topics, claim)
            for index, (topics, claim) in enumerate(zip(wanted, claims, strict=True))
        ]
        found = assign_cooperative_sticky(members, counts)
        claims = [Claim(frozenset(found[each.member_id]), generation) for each in members]
    everything = sorted(key for share in found.values() for key in share)
    subscribed = {topic for topics in wanted for topic in topics}
    assert everything == sorted(
        TopicPartition(topic, index) for topic in subscribed & counts.keys() for index in range(counts[topic])
    )
    assert [frozenset(share) for share in found.values()] == [each.claim.owned for each in members]
