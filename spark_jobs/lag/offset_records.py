"""The records of `__consumer_offsets` as rows, by the codec of the project's group coordinator.

A record is an offset of (group, topic, partition), the members of a group in a generation, or one member of a group of
the newer protocol (KIP-848). Other records of the newer protocol say nothing about lag and give no row.

Executors import this module: it imports no Spark.

Kafka: GroupMetadataManager.readMessageKey, ConsumerGroupCommand.ConsumerGroupService.collectGroupOffsets.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.coordinator.group.state.records import (
    is_group_key,
    is_offset_key,
    normalized_key,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from odradek.coordinator.versioned_messages import CoordinatorRecordError, decode_versioned, read_version
from odradek.protocol.codec.codec import DecodeError, decode
from odradek.protocol.messages.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from odradek.protocol.messages.coordinator_records import MemberMetadata

TOPIC: Final = "__consumer_offsets"
OFFSET: Final = "offset"
GROUP: Final = "group"
MEMBER: Final = "member"
UNREADABLE: Final = "unreadable"
MEMBER_KEY_VERSION: Final = 5
HIGHEST_KEY_VERSION: Final = 15  # of Kafka 4.1; keys of 3 and above are those of newer groups

SCHEMA: Final = (
    "kind STRING, group STRING, topic STRING, partition INT, member_id STRING, removed BOOLEAN, committed BIGINT, "
    "members ARRAY<STRUCT<member_id: STRING, client_id: STRING, host: STRING, "
    "assigned: ARRAY<STRUCT<topic: STRING, partition: INT>>>>"
)
"""Spark's schema of `OffsetRecord`."""


class AssignedMember(NamedTuple):
    """A member of a group, with the partitions that are assigned to it."""

    member_id: str
    client_id: str
    host: str
    assigned: list[tuple[str, int]]


class OffsetRecord(NamedTuple):
    """A record; `removed` for a tombstone. What does not belong to its kind is None."""

    kind: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    member_id: str | None = None
    removed: bool = False
    committed: int | None = None
    members: list[AssignedMember] | None = None


def offset_record(key: bytes | bytearray | None, value: bytes | bytearray | None) -> OffsetRecord | None:
    """The record of a key and a value; None for one that says nothing about lag."""
    if key is None:
        return OffsetRecord(UNREADABLE)
    try:
        return _decoded(normalized_key(bytes(key)), None if value is None else bytes(value))
    except CoordinatorRecordError:
        return OffsetRecord(UNREADABLE)


def _decoded(key: bytes, value: bytes | None) -> OffsetRecord | None:
    if is_offset_key(key):
        group, tp = read_offset_key(key)
        committed = None if value is None else read_offset_value(value).offset
        return OffsetRecord(OFFSET, group, tp.topic, tp.partition, removed=value is None, committed=committed)
    if is_group_key(key):
        members = [] if value is None else [_member(member) for member in read_group_value(value).members]
        return OffsetRecord(GROUP, read_group_key(key), removed=value is None, members=members)
    version = read_version(key)
    if version == MEMBER_KEY_VERSION:
        member_key = decode_versioned(ConsumerGroupMemberMetadataKey, key)
        found = [] if value is None else [_newer_member(member_key.member_id, value)]
        return OffsetRecord(
            MEMBER, member_key.group_id, member_id=member_key.member_id, removed=value is None, members=found
        )
    if 0 <= version <= HIGHEST_KEY_VERSION:
        return None
    raise CoordinatorRecordError(f"unknown version {version} of a key")


def _member(member: MemberMetadata) -> AssignedMember:
    return AssignedMember(member.member_id, member.client_id, member.client_host, _assigned(member.assignment))


def _newer_member(member_id: str, value: bytes) -> AssignedMember:
    """Its assignment names topics by id, so it is left out."""
    member = decode_versioned(ConsumerGroupMemberMetadataValue, value)
    return AssignedMember(member_id, member.client_id, member.client_host, [])


def _assigned(assignment: bytes) -> list[tuple[str, int]]:
    """The partitions of an assignment; none if it is not that of a consumer."""
    if len(assignment) < 2:
        return []
    try:
        # Version 0 is the beginning of all versions.
        decoded = decode(ConsumerProtocolAssignment, memoryview(assignment)[2:], 0)
    except DecodeError:
        return []
    return [(topic.topic, partition) for topic in decoded.assigned_partitions for partition in topic.partitions]
