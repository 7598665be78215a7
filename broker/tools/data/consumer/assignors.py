"""Assigns partitions to the members of a group, when this member leads it.

`range`: for each topic, consecutive partitions to its subscribers in order. `roundrobin`: all partitions in turn to the
next member that subscribes to their topic. Both give the result of Java's assignors without racks.
`sticky` and `cooperative-sticky` are in `sticky.py`.

Kafka: RangeAssignor, RoundRobinAssignor, AbstractPartitionAssignor.MemberInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from odradek.broker.tools.data.consumer.member_metadata import Subscriber
from odradek.broker.tools.data.consumer.sticky import assign_cooperative_sticky, assign_sticky
from odradek.protocol.topic_partition import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""Member id -> partitions."""

Assignor = Callable[[Collection[Subscriber], Mapping[str, int]], Assignment]


def _in_order(members: Collection[Subscriber]) -> list[Subscriber]:
    """Static members first, by instance id; then the others by member id."""
    return sorted(
        members,
        key=lambda member: (member.group_instance_id is None, member.group_instance_id or "", member.member_id),
    )


def assign_range(members: Collection[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """`partitions`: the number of partitions of each topic that exists."""
    ordered = _in_order(members)
    assignment: Assignment = {member.member_id: [] for member in ordered}
    for topic, count in partitions.items():
        consumers = [member for member in ordered if topic in member.topics]
        if not consumers:
            continue
        share, rest = divmod(count, len(consumers))
        begin = 0
        for index, member in enumerate(consumers):
            end = begin + share + (index < rest)
            assignment[member.member_id] += [TopicPartition(topic, partition) for partition in range(begin, end)]
            begin = end
    return assignment


def assign_round_robin(members: Collection[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """`partitions`: the number of partitions of each topic that exists."""
    ordered = _in_order(members)
    assignment: Assignment = {member.member_id: [] for member in ordered}
    turn = 0
    for topic, count in sorted(partitions.items()):
        if not any(topic in member.topics for member in ordered):
            continue
        for partition in range(count):
            while topic not in ordered[turn % len(ordered)].topics:
                turn += 1
            assignment[ordered[turn % len(ordered)].member_id].append(TopicPartition(topic, partition))
            turn += 1
    return assignment


STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    STICKY: assign_sticky,
    COOPERATIVE_STICKY: assign_cooperative_sticky,
}
"""By their names in JoinGroup, the preferred first."""

_CLASSES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": STICKY,
    "CooperativeStickyAssignor": COOPERATIVE_STICKY,
}


def assignor_names(text: str) -> tuple[str, ...]:
    """The names in a `partition.assignment.strategy`: librdkafka's names or Java's classes. Raises: ValueError."""
    names = [name.strip() for name in text.split(",")]
    found = tuple(dict.fromkeys(_CLASSES.get(name.rpartition(".")[2], name) for name in names))
    for name in found:
        if name not in ASSIGNORS:
            raise ValueError(f"{name!r} is no assignor that is known here; known are {', '.join(ASSIGNORS)}")
    return found
