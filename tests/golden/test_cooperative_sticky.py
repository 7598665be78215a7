"""The assignor cooperative-sticky beside Java's, on groups whose members come and go.

`assignors/cooperative-sticky-3.9.1.txt` was written by `assignors/CaptureCooperativeSticky.java` (seed 1, 60 groups).
"""

from __future__ import annotations

from pathlib import Path

from odradek.broker.tools.data.consumer.cooperative_sticky import assign_cooperative_sticky
from odradek.broker.tools.data.consumer.member_metadata import Claim, Subscriber
from odradek.protocol.topic_partition import TopicPartition

Assigned = dict[str, frozenset[TopicPartition]]
LINES = (Path(__file__).parent / "assignors" / "cooperative-sticky-3.9.1.txt").read_text().splitlines()


def keys(text: str) -> frozenset[TopicPartition]:
    parts = () if text == "-" else (name.rpartition("-") for name in text.split(","))
    return frozenset(TopicPartition(topic, int(partition)) for topic, _, partition in parts)


def case(line: str) -> tuple[dict[str, int], list[Subscriber], Assigned]:
    """Partition counts, members, and what Java's assignor gave them."""
    first, *rest = (part.strip() for part in line.split("|"))
    counts = {topic: int(count) for topic, _, count in (part.partition(":") for part in first.split())}
    members, given = [], {}
    for part in rest:
        name, topics, generation, owned, assigned = part.split(" ")
        wanted = frozenset(topics.split(","))
        members.append(Subscriber(name, None, wanted, Claim(keys(owned), int(generation))))
        given[name] = keys(assigned)
    return counts, members, given


def spread(assigned: Assigned) -> int:
    """0 if all shares are equal; Java's balance score."""
    sizes = [len(share) for share in assigned.values()]
    return sum(abs(one - other) for one in sizes for other in sizes) // 2


def kept(members: list[Subscriber], assigned: Assigned) -> int:
    return sum(len(member.claim.owned & assigned[member.member_id]) for member in members)


def test_shares_are_as_balanced_and_as_sticky_as_javas() -> None:
    """With different subscriptions Java's assignor moves more partitions in one of the cases than it has to."""
    different = 0
    for line in LINES:
        counts, members, java = case(line)
        ours = {name: frozenset(share) for name, share in assign_cooperative_sticky(members, counts).items()}
        if len({member.topics for member in members}) == 1:
            assert sorted(map(len, ours.values())) == sorted(map(len, java.values())), line
            assert kept(members, ours) == kept(members, java), line
        else:
            different += 1
            assert kept(members, ours) >= kept(members, java), line
            assert spread(ours) <= spread(java) or kept(members, ours) > kept(members, java), line
    assert different > 50


def test_nothing_is_given_that_another_member_has() -> None:
    for line in LINES:
        counts, members, _ = case(line)
        found = assign_cooperative_sticky(members, counts)
        everything = [key for share in found.values() for key in share]
        assert len(everything) == len(set(everything))
        for member in members:
            others = frozenset().union(*(other.claim.owned for other in members if other is not member))
            assert not others & set(found[member.member_id]), line
