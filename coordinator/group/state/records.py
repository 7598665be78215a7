"""The record formats of `__consumer_offsets`.

Every record is a key and a value, each a 16-bit version and a message in that version. The key's version is also the
type of the record: 0 and 1 an offset of (group, topic, partition), 2 the metadata of a group. Later versions belong to
group types that this coordinator does not serve; their records are ignored. A null value is a tombstone.

`inter.broker.protocol.version` decides the version of the values: since 2.3 version 3, for both types. An offset
with a retention set by the client is written in version 1, the only one with that field. Versions up to 4 are read.

Kafka: GroupMetadataManager.offsetCommitKey, GroupMetadataManager.offsetCommitValue,
GroupMetadataManager.groupMetadataKey, GroupMetadataManager.groupMetadataValue, GroupMetadataManager.readMessageKey.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.versioned_messages import decode_versioned
from odradek.protocol.codec.codec import DecodeError, decode, encode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.messages.coordinator_records import MemberMetadata as MemberMetadataRecord
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.protocol.topic_partition import TopicPartition

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

OFFSET_KEY_VERSION: Final = 1
GROUP_KEY_VERSION: Final = 2
OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1

VERSION_BYTES: Final = 2
OFFSET_BYTES: Final = 8
PARTITION_BYTES: Final = 4

_OFFSET_KEY_PREFIX: Final = OFFSET_KEY_VERSION.to_bytes(2, "big")
_GROUP_KEY_PREFIX: Final = GROUP_KEY_VERSION.to_bytes(2, "big")


def offset_commit_key(group_id: str, topic_partition: TopicPartition) -> bytes:
    topic, partition = topic_partition
    return _OFFSET_KEY_PREFIX + encode(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition), OFFSET_KEY_VERSION
    )


class OffsetRecords:
    """Keys and values of the offsets that one request commits.

    The partition is the last field of a key and the offset the first one of a value. Most partitions of a request have
    the other fields in common, so these are encoded once.
    """

    __slots__ = ("_group_id", "_keys", "_metadata_version", "_values")

    def __init__(self, group_id: str, metadata_version: MetadataVersion) -> None:
        self._group_id = group_id
        self._metadata_version = metadata_version
        self._keys: dict[str, bytes] = {}
        """Without the partition, by topic."""
        self._values: dict[tuple[object, ...], bytes] = {}
        """By all fields but the offset, which is that of the first partition with these fields."""

    def key_and_value(self, topic_partition: TopicPartition, offset: OffsetAndMetadata) -> tuple[bytes, bytes]:
        """Both in one call: a request may commit thousands of offsets."""
        topic, partition = topic_partition
        of_topic = self._keys.get(topic)
        if of_topic is None:
            of_topic = self._keys[topic] = offset_commit_key(self._group_id, topic_partition)[:-PARTITION_BYTES]
        key = of_topic + partition.to_bytes(PARTITION_BYTES, "big", signed=True)
        others = offset[1:]
        like = self._values.get(others)
        if like is None:
            like = self._values[others] = offset_commit_value(offset, self._metadata_version)
            return key, like
        at = VERSION_BYTES + OFFSET_BYTES
        return key, like[:VERSION_BYTES] + offset.offset.to_bytes(OFFSET_BYTES, "big", signed=True) + like[at:]


def group_metadata_key(group_id: str) -> bytes:
    return _GROUP_KEY_PREFIX + encode(GroupMetadataKey(group=group_id), GROUP_KEY_VERSION)


def offset_commit_value(offset: OffsetAndMetadata, metadata_version: MetadataVersion = LATEST_PRODUCTION) -> bytes:
    version = OFFSET_VALUE_VERSION_WITH_EXPIRY
    if offset.expire_timestamp_ms is None:
        version = metadata_version.offset_commit_value_version
    value = OffsetCommitValue(
        offset=offset.offset,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        leader_epoch=offset.leader_epoch,
    )
    if offset.expire_timestamp_ms is not None:
        value.expire_timestamp = offset.expire_timestamp_ms
    return version.to_bytes(2, "big") + encode(value, version)


def group_metadata_value(
    *,
    protocol_type: str | None,
    generation_id: int,
    protocol_name: str | None,
    leader_id: str | None,
    since_ms: int | None,
    members: Iterable[MemberMetadata],
    assignment: dict[str, bytes],
    metadata_version: MetadataVersion = LATEST_PRODUCTION,
) -> bytes:
    """The group in a generation. `assignment` must have an entry for every member."""
    value = GroupMetadataValue(
        protocol_type=protocol_type or "",
        generation=generation_id,
        protocol=protocol_name,
        leader=leader_id,
        current_state_timestamp=NO_TIMESTAMP if since_ms is None else since_ms,
        members=[
            MemberMetadataRecord(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol_name) if protocol_name is not None else b"",
                assignment=assignment[member.member_id],
            )
            for member in members
        ],
    )
    version = metadata_version.group_metadata_value_version
    return version.to_bytes(2, "big") + encode(value, version)


def normalized_key(key: bytes) -> bytes:
    """The key as this coordinator writes it: an offset key of version 0 has the same layout as version 1."""
    return _OFFSET_KEY_PREFIX + key[2:] if key.startswith(b"\x00\x00") else key


def is_offset_key(normalized: bytes) -> bool:
    return normalized.startswith(_OFFSET_KEY_PREFIX)


def is_group_key(normalized: bytes) -> bool:
    return normalized.startswith(_GROUP_KEY_PREFIX)


def read_offset_key(normalized: bytes) -> tuple[str, TopicPartition]:
    key = decode_versioned(OffsetCommitKey, normalized)
    return key.group, TopicPartition(key.topic, key.partition)


def read_group_key(normalized: bytes) -> str:
    return decode_versioned(GroupMetadataKey, normalized).group


def read_offset_value(data: bytes) -> OffsetAndMetadata:
    value = decode_versioned(OffsetCommitValue, data)
    return OffsetAndMetadata(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if value.expire_timestamp == NO_TIMESTAMP else value.expire_timestamp,
    )


def read_group_value(data: bytes) -> GroupMetadataValue:
    return decode_versioned(GroupMetadataValue, data)


def member_from_record(value: GroupMetadataValue, member: MemberMetadataRecord, version: int) -> MemberMetadata:
    """A member from its record, which has only the selected protocol of those it supported."""
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        # Version 0 has only one timeout.
        rebalance_timeout_ms=member.session_timeout if version == 0 else member.rebalance_timeout,
        session_timeout_ms=member.session_timeout,
        protocol_type=value.protocol_type,
        protocols=((value.protocol or "", member.subscription),),
        assignment=member.assignment,
    )


def subscribed_topics_of(subscription: bytes) -> list[str] | None:
    """The topics in a consumer's join metadata; None if it is not a valid ConsumerProtocolSubscription.

    Decoded as version 0 whatever its version is: version 0 is a prefix of all others, so that the subscriptions of
    newer clients can be read too.
    """
    if len(subscription) < 2:
        return None
    try:
        return decode(ConsumerProtocolSubscription, memoryview(subscription)[2:], 0).topics
    except DecodeError:
        return None
