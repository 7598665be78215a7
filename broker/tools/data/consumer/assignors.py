"""Assigns partitions to the members of a group, when this member leads it.

`range`: for each topic, consecutive partitions to its subscribers in order. `roundrobin`: all partitions in turn to the
next member that subscribes to their topic. Both give the result of Java's assignors without racks.

Kafka: RangeAssignor, RoundRobinAssignor, AbstractPartitionAssignor.MemberInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeVar

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from odradek.protocol.topic_partition import TopicPartition

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)

_VERSION: Final = Struct(">h")
_HIGHEST_VERSION: Final = 3


class Subscriber(NamedTuple):
    """A member that takes part in an assignment."""

    member_id: str
    group_instance_id: str | None
    topics: frozenset[str]


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


ASSIGNORS: Final[Mapping[str, Assignor]] = {"range": assign_range, "roundrobin": assign_round_robin}
"""By their names in JoinGroup, the preferred first."""


def encode_subscription(topics: Collection[str]) -> bytes:
    """The metadata of a member in JoinGroup. The oldest version suffices: nothing is owned between generations."""
    return _VERSION.pack(0) + encode(ConsumerProtocolSubscription(topics=sorted(topics)), 0)


def decode_subscription(data: bytes) -> frozenset[str]:
    """The topics of a member. Raises: DecodeError."""
    return frozenset(_decode(ConsumerProtocolSubscription, data).topics)


def encode_assignment(partitions: Collection[TopicPartition]) -> bytes:
    """The assignment of a member in SyncGroup."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    assigned = [AssignmentTopicPartition(topic=name, partitions=indexes) for name, indexes in by_topic.items()]
    return _VERSION.pack(0) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions of a member; none for empty bytes. Raises: DecodeError."""
    if not data:
        return []
    assigned = _decode(ConsumerProtocolAssignment, data).assigned_partitions
    return [TopicPartition(found.topic, partition) for found in assigned for partition in found.partitions]


def _decode(kind: type[M], data: bytes) -> M:
    """A version from the future is read as the highest known one."""
    try:
        (version,) = _VERSION.unpack_from(data)
    except StructError:
        raise DecodeError(f"{kind.__name__}: {len(data)} bytes have no version") from None
    if version < 0:
        raise DecodeError(f"{kind.__name__}: unsupported version {version}")
    return decode(kind, data, min(version, _HIGHEST_VERSION), None, _VERSION.size)
