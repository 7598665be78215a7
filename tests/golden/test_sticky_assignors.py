"""The assignors cooperative-sticky and sticky beside Java's, on groups whose members come and go.

`assignors/cooperative-sticky-3.9.1.txt` (seed 1, 60 groups) and `assignors/sticky-3.9.1.txt` (seed 1, 100 groups) were
written by `assignors/CaptureSticky.java`.
"""

from __future__ import annotations

from pathlib import Path

from odradek.broker.tools.data.consumer.member_metadata import (
    Claim,
    Subscriber,
    decode_sticky_subscription,
    encode_sticky_subscription,
)
from odradek.broker.tools.data.consumer.sticky import assign_cooperative_sticky, assign_sticky
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.topic_partition import TopicPartition

Assigned = dict[str, frozenset[TopicPartition]]
HERE = Path(__file__).parent / "assignors"
LINES = (HERE / "cooperative-sticky-3.9.1.txt").read_text().splitlines()
STICKY_LINES = (HERE / "sticky-3.9.1.txt").read_text().splitlines()


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


def sticky_case(line: str) -> tuple[dict[str, int], list[Subscriber], Assigned]:
    """As `case`, of members whose user data says what they had."""
    first, *rest = (part.strip() for part in line.split("|"))
    counts = {topic: int(count) for topic, _, count in (part.partition(":") for part in first.split())}
    members, given = [], {}
    for part in rest:
        name, topics, user_data, assigned = part.split(" ")
        subscription = ConsumerProtocolSubscription(
            topics=topics.split(","), user_data=None if user_data == "-" else bytes.fromhex(user_data)
        )
        metadata = b"\0\0" + encode(subscription, 0)
        member = decode_sticky_subscription(name, None, metadata)
        ours = encode_sticky_subscription(member.topics, None if user_data == "-" else member.claim)
        assert sorted(ours) == sorted(metadata), line  # Java's partitions come in the order of its assignment
        assert decode_sticky_subscription(name, None, ours) == member, line
        members.append(member)
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


def kept_by_last_owners(members: list[Subscriber], assigned: Assigned) -> int:
    """Without what members get back that were away for a generation or more."""
    last: dict[TopicPartition, Subscriber] = {}
    for member in sorted(members, key=lambda member: member.claim.generation):
        last.update(dict.fromkeys(member.claim.owned, member))
    return sum(key in assigned[member.member_id] for key, member in last.items())


def test_shares_of_sticky_are_as_balanced_and_as_sticky_as_javas() -> None:
    """Of the partitions that have to move, members that come back get more than Java gives them of what they had."""
    different = ours_kept = javas_kept = 0
    for line in STICKY_LINES:
        counts, members, java = sticky_case(line)
        ours = {name: frozenset(share) for name, share in assign_sticky(members, counts).items()}
        everything = [key for share in ours.values() for key in share]
        assert len(everything) == len(set(everything)) == sum(counts.values()), line
        assert set(everything) == {key for share in java.values() for key in share}, line
        if len({member.topics for member in members}) == 1:
            assert sorted(map(len, ours.values())) == sorted(map(len, java.values())), line
            assert kept_by_last_owners(members, ours) == kept_by_last_owners(members, java), line
            ours_kept += kept(members, ours)
            javas_kept += kept(members, java)
        else:
            different += 1
            fewer_moves = kept(members, ours) - kept(members, java)
            more_balanced = spread(java) - spread(ours)
            assert max(fewer_moves, more_balanced) > 0 or fewer_moves == more_balanced == 0, line
    assert different > 50
    assert ours_kept > javas_kept


def test_nothing_is_given_that_another_member_has() -> None:
    for line in LINES:
        counts, members, _ = case(line)
        found = assign_cooperative_sticky(members, counts)
        everything = [key for share in found.values() for key in share]
        assert len(everything) == len(set(everything))
        for member in members:
            others = frozenset().union(*(other.claim.owned for other in members if other is not member))
            assert not others & set(found[member.member_id]), line
