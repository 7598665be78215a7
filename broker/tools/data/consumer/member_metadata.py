"""What members of a group tell each other by the coordinator: subscriptions in JoinGroup, assignments in SyncGroup.

Kafka: ConsumerProtocol, CooperativeStickyAssignor.subscriptionUserData.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeVar

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.decode_error import DecodeError
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


class Claim(NamedTuple):
    """The partitions that a member keeps while its group rebalances (KIP-429)."""

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


def decode_subscription(member_id: str, group_instance_id: str | None, data: bytes) -> Subscriber:
    """A member as it has joined. Raises: DecodeError."""
    found = _decode(ConsumerProtocolSubscription, data)
    owned = frozenset(
        TopicPartition(part.topic, partition) for part in found.owned_partitions for partition in part.partitions
    )
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
