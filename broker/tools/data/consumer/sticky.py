"""The assignors sticky (KIP-54) and cooperative-sticky (KIP-429): members keep what they have as far as the shares stay
balanced.

With sticky, members give up everything before they join, and tell what they had. With cooperative-sticky they keep what
they have: a partition that goes from one member to another is withheld from both in this generation; its owner revokes
it, joins again, and the next generation gives it to the new member. So no two members ever have the same partition.

The shares are as balanced as those of Java's assignor without racks, and no more partitions change their member; which
of several equal members gets a partition may differ.

Kafka: StickyAssignor, CooperativeStickyAssignor, AbstractStickyAssignor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from odradek.broker.tools.data.consumer.member_metadata import Subscriber
from odradek.protocol.topic_partition import TopicPartition


def assign_cooperative_sticky(
    members: Collection[Subscriber], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """The partitions of each member, by member id, without those that their owners have to revoke first.

    `partitions`: the number of partitions of each topic that exists.
    """
    owners = _owners(members)
    return {
        member_id: [key for key in share if owners.get(key, member_id) == member_id]
        for member_id, share in assign_sticky(members, partitions).items()
    }


def assign_sticky(members: Collection[Subscriber], partitions: Mapping[str, int]) -> dict[str, list[TopicPartition]]:
    """The partitions of each member, by member id.

    `partitions`: the number of partitions of each topic that exists.
    """
    shares = _Shares(members, partitions)
    owners = _owners(members)
    unowned = []
    for key in shares.keys_in_order():
        owner = owners.get(key)
        if owner is not None and owner in shares.subscribers[key.topic]:
            shares.give(key, owner)
        elif shares.subscribers[key.topic]:
            unowned.append(key)
    for key in unowned:
        shares.give(key, shares.smallest(shares.subscribers[key.topic]))
    shares.balance(owners)
    return {member_id: sorted(share) for member_id, share in shares.by_member.items()}


class _Shares:
    """The partitions of each member while they are assigned."""

    def __init__(self, members: Collection[Subscriber], partitions: Mapping[str, int]) -> None:
        self.by_member: dict[str, set[TopicPartition]] = {member.member_id: set() for member in members}
        self.subscribers = {
            topic: tuple(sorted(member.member_id for member in members if topic in member.topics))
            for topic in partitions
        }
        self._partitions = partitions
        self._claimed = {member.member_id: member.claim.owned for member in members}

    def keys_in_order(self) -> list[TopicPartition]:
        """All partitions; first those of the topics with the fewest subscribers, which have the least choice."""
        topics = sorted(self._partitions, key=lambda topic: (len(self.subscribers[topic]), topic))
        return [TopicPartition(topic, index) for topic in topics for index in range(self._partitions[topic])]

    def give(self, key: TopicPartition, member_id: str) -> None:
        self.by_member[member_id].add(key)

    def smallest(self, member_ids: Collection[str]) -> str:
        """The member with the smallest share."""
        return min(member_ids, key=lambda member_id: (len(self.by_member[member_id]), member_id))

    def balance(self, owners: Mapping[TopicPartition, str | None]) -> None:
        """Move partitions, of the largest share first, until no move makes two shares more equal."""
        while any(self._moved_one(giver, owners) for giver in self._largest_first()):
            pass

    def _largest_first(self) -> list[str]:
        return sorted(self.by_member, key=lambda member_id: (-len(self.by_member[member_id]), member_id))

    def _moved_one(self, giver: str, owners: Mapping[TopicPartition, str | None]) -> bool:
        share = self.by_member[giver]
        topics = {key.topic for key in share}
        smallest = {found: self.smallest(found) for found in {self.subscribers[topic] for topic in topics}}
        takers = {topic: smallest[self.subscribers[topic]] for topic in topics}
        movable = [key for key in share if len(self.by_member[takers[key.topic]]) + 1 < len(share)]
        if not movable:
            return False
        # to the smallest share; first what the giver does not own, then what the taker had in an earlier generation
        moved = min(
            movable,
            key=lambda key: (
                len(self.by_member[takers[key.topic]]),
                owners.get(key) == giver,
                key not in self._claimed[takers[key.topic]],
                -key.partition,
                key.topic,
            ),
        )
        share.remove(moved)
        self.give(moved, takers[moved.topic])
        return True


def _owners(members: Collection[Subscriber]) -> dict[TopicPartition, str | None]:
    """Who keeps a partition: its claimant of the latest generation; None if several claim it in the same one."""
    found: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        for key in member.claim.owned:
            generation, _ = found.get(key, (None, None))
            if generation is None or member.claim.generation > generation:
                found[key] = (member.claim.generation, member.member_id)
            elif member.claim.generation == generation:
                found[key] = (generation, None)
    return {key: owner for key, (_, owner) in found.items()}
