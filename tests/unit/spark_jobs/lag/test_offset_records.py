"""Records of `__consumer_offsets`, as the coordinators write them, and bytes that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.group.state.records import (
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
    offset_commit_value,
)
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
)
from odradek.protocol.messages.consumer_protocol import AssignmentTopicPartition, ConsumerProtocolAssignment
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.lag.offset_records import GROUP, MEMBER, OFFSET, UNREADABLE, OffsetRecord, offset_record

PLACE = TopicPartition("clicks", 3)
KEY = offset_commit_key("g", PLACE)


def test_an_offset_and_its_tombstone() -> None:
    value = offset_commit_value(OffsetAndMetadata(offset=42, commit_timestamp_ms=1))
    assert offset_record(bytearray(KEY), bytearray(value)) == OffsetRecord(OFFSET, "g", "clicks", 3, committed=42)
    assert offset_record(KEY, None) == OffsetRecord(OFFSET, "g", "clicks", 3, removed=True)


def test_a_key_of_the_oldest_version_is_the_same_key() -> None:
    record = offset_record(b"\x00\x00" + KEY[2:], None)
    assert record == offset_record(KEY, None)


@pytest.mark.parametrize("version", [0, 3])
def test_the_members_of_a_group_with_their_partitions(version: int) -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[AssignmentTopicPartition(topic="clicks", partitions=[0, 3])]
    )
    member = MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )
    value = group_metadata_value(
        protocol_type="consumer",
        generation_id=1,
        protocol_name="range",
        leader_id="m",
        since_ms=None,
        members=[member],
        assignment={"m": version.to_bytes(2, "big") + encode(assignment, version)},
    )
    record = offset_record(group_metadata_key("g"), value)
    assert record is not None
    assert (record.kind, record.group, record.removed) == (GROUP, "g", False)
    assert record.members == [("m", "c", "/127.0.0.1", [("clicks", 0), ("clicks", 3)])]
    assert offset_record(group_metadata_key("g"), None) == OffsetRecord(GROUP, "g", removed=True, members=[])


def test_a_member_of_the_newer_protocol() -> None:
    key = b"\x00\x05" + encode(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), 5)
    member = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        server_assignor=None,
    )
    record = offset_record(key, b"\x00\x00" + encode(member, 0))
    assert record == OffsetRecord(MEMBER, "g", member_id="m", members=[("m", "c", "h", [])])  # type: ignore[list-item]
    assert offset_record(key, None) == OffsetRecord(MEMBER, "g", member_id="m", removed=True, members=[])


def test_records_that_say_nothing_about_lag_give_no_row() -> None:
    assert offset_record(b"\x00\x03" + encode(ConsumerGroupMetadataKey(group_id="g"), 3), None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", None),
        (b"\x00\x63", None),
        (KEY[:-1], None),
        (KEY, b""),
        (KEY, b"\x00\x63"),
        (KEY, b"\x00\x03"),
    ],
)
def test_what_cannot_be_decoded_is_counted(key: bytes | None, value: bytes | None) -> None:
    assert offset_record(key, value) == OffsetRecord(UNREADABLE)


@given(st.binary(max_size=64), st.none() | st.binary(max_size=64))
def test_any_bytes_are_a_row_or_none(key: bytes, value: bytes | None) -> None:
    for prefix in (b"", b"\x00\x01", b"\x00\x02", b"\x00\x05"):
        offset_record(prefix + key, value)
