"""What members of a group tell each other by the coordinator: subscriptions in JoinGroup, assignments in SyncGroup.

Kafka: ConsumerProtocol, CooperativeStickyAssignor.subscriptionUserData, StickyAssignor.subscriptionUserData.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeVar

from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.first_uses import decode, encode
from odradek.protocol.codec.schema import Message, array, int32
from odradek.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)
from odradek.protocol.topic_partition import TopicPartition

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)

_VERSION: Final = Struct(">h")
_HIGHEST_VERSION: Final = 3
_GENERATION: Final = Struct(">i")


class StickyUserData(Message, versions="0-1", flexible="none"):
    """What a member tells the assignor sticky. Kafka: StickyAssignor.STICKY_ASSIGNOR_USER_DATA_V1."""

    previous_assignment: list[AssignmentTopicPartition] = array(AssignmentTopicPartition, "0+")
    generation: int = int32("1+", default=-1, ignorable=True)


class Claim(NamedTuple):
    """The partitions that a member keeps while its group rebalances (KIP-429), or had before (sticky)."""

    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    """In which they were assigned."""


class Subscriber(NamedTuple):
    """A member that takes part in an assignment."""

    member_id: str
    group_instance_id: str | None
    topics: frozenset[str]
    claim: Claim = Claim()


def encode_subscription(topics: Collection[str], claim: Claim | None = None) -> bytes:
    """The metadata of a member in JoinGroup. Without a claim the oldest version suffices."""
    if claim is None:
        return _VERSION.pack(0) + encode(ConsumerProtocolSubscription(topics=sorted(topics)), 0)
    subscription = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=_GENERATION.pack(claim.generation),
        owned_partitions=[
            SubscriptionTopicPartition(topic=name, partitions=indexes)
            for name, indexes in _by_topic(claim.owned).items()
        ],
        generation_id=claim.generation,
    )
    return _VERSION.pack(_HIGHEST_VERSION) + encode(subscription, _HIGHEST_VERSION)


def encode_sticky_subscription(topics: Collection[str], previous: Claim | None) -> bytes:
    """The same for the assignor sticky, whose user data has what the member had; None: it never had anything."""
    user_data = None
    if previous is not None:
        had = [
            AssignmentTopicPartition(topic=name, partitions=found) for name, found in _by_topic(previous.owned).items()
        ]
        user_data = encode(StickyUserData(previous_assignment=had, generation=previous.generation), 1)
    return _VERSION.pack(0) + encode(ConsumerProtocolSubscription(topics=sorted(topics), user_data=user_data), 0)


def decode_sticky_subscription(member_id: str, group_instance_id: str | None, data: bytes) -> Subscriber:
    """A member as it has joined. What it had is forgotten if the user data cannot be read. Raises: DecodeError."""
    found = _decode(ConsumerProtocolSubscription, data)
    claim = Claim()
    if found.user_data:
        for version in (1, 0):  # the bytes do not say which
            with suppress(DecodeError):
                had = decode(StickyUserData, found.user_data, version)
                claim = Claim(_partitions(had.previous_assignment), had.generation)
                break
    return Subscriber(member_id, group_instance_id, frozenset(found.topics), claim)


def decode_subscription(member_id: str, group_instance_id: str | None, data: bytes) -> Subscriber:
    """A member as it has joined. Raises: DecodeError."""
    found = _decode(ConsumerProtocolSubscription, data)
    owned = _partitions(found.owned_partitions)
    generation = found.generation_id
    if generation < 0 and found.user_data is not None and len(found.user_data) == _GENERATION.size:
        (generation,) = _GENERATION.unpack(found.user_data)  # version 1 has no other place for it
    return Subscriber(member_id, group_instance_id, frozenset(found.topics), Claim(owned, generation))


def encode_assignment(partitions: Collection[TopicPartition]) -> bytes:
    """The assignment of a member in SyncGroup."""
    assigned = [
        AssignmentTopicPartition(topic=name, partitions=indexes) for name, indexes in _by_topic(partitions).items()
    ]
    return _VERSION.pack(0) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions of a member; none for empty bytes. Raises: DecodeError."""
    if not data:
        return []
    assigned = _decode(ConsumerProtocolAssignment, data).assigned_partitions
    return [TopicPartition(found.topic, partition) for found in assigned for partition in found.partitions]


def _partitions(
    found: Collection[SubscriptionTopicPartition] | Collection[AssignmentTopicPartition],
) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(part.topic, partition) for part in found for partition in part.partitions)


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def _decode(kind: type[M], data: bytes) -> M:
    """A version from the future is read as the highest known one."""
    try:
        (version,) = _VERSION.unpack_from(data)
    except StructError:
        raise DecodeError(f"{kind.__name__}: {len(data)} bytes have no version") from None
    if version < 0:
        raise DecodeError(f"{kind.__name__}: unsupported version {version}")
    return decode(kind, data, min(version, _HIGHEST_VERSION), None, _VERSION.size)
