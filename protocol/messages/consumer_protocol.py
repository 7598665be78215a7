"""What consumers put into the opaque bytes of JoinGroup (subscription) and SyncGroup (assignment).

The broker reads it only to learn which topics a group subscribes to. It is a message behind an int16 version; a version
from the future is read as the highest known one. All versions share their beginning, so that this works.

v1   owned_partitions, for cooperative rebalancing (KIP-429)
v2   generation_id (KIP-792)
v3   rack_id (KIP-881)

Kafka: ConsumerProtocol.
"""

from __future__ import annotations

from odradek.protocol.codec.schema import INT32, STRING, Message, Struct, array, byte_string, int32, string


class SubscriptionTopicPartition(Struct):
    topic: str = string("1+")
    partitions: list[int] = array(INT32, "1+")


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    topics: list[str] = array(STRING, "0+")
    user_data: bytes | None = byte_string("0+", nullable="0+", default=None)
    owned_partitions: list[SubscriptionTopicPartition] = array(SubscriptionTopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class AssignmentTopicPartition(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    assigned_partitions: list[AssignmentTopicPartition] = array(AssignmentTopicPartition, "0+")
    user_data: bytes | None = byte_string("0+", nullable="0+", default=None)
