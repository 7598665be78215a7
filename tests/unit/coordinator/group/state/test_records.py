from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.coordinator.group.state.records import (
    OffsetRecords,
    group_metadata_key,
    group_metadata_value,
    is_group_key,
    is_offset_key,
    member_from_record,
    normalized_key,
    offset_commit_key,
    offset_commit_value,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    subscribed_topics_of,
)
from odradek.coordinator.versioned_messages import CoordinatorRecordError
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.coordinator_records import GroupMetadataValue, OffsetCommitValue
from odradek.protocol.messages.coordinator_records import MemberMetadata as MemberMetadataRecord
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.protocol.topic_partition import TopicPartition

T = 1_700_000_000_000
T0 = TopicPartition("t", 0)


def member(member_id: str = "m-1") -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=5,
        session_timeout_ms=6,
        protocol_type="consumer",
        protocols=(("range", b"sub"), ("sticky", b"other")),
        assignment=b"ass",
    )


def stored_group(members: list[MemberMetadata]) -> bytes:
    return group_metadata_value(
        protocol_type="consumer",
        generation_id=7,
        protocol_name="range" if members else None,
        leader_id=members[0].member_id if members else None,
        since_ms=T,
        members=members,
        assignment={one.member_id: one.assignment for one in members},
    )


def test_keys_are_kafkas() -> None:
    assert offset_commit_key("g", T0) == bytes.fromhex("0001 000167 000174 00000000")
    assert group_metadata_key("g") == bytes.fromhex("0002 000167")


def test_offset_value_is_kafkas() -> None:
    value = offset_commit_value(OffsetAndMetadata(offset=42, leader_epoch=7, commit_timestamp_ms=T))
    assert value == bytes.fromhex("0003 000000000000002a 00000007 0000 0000018bcfe56800")


@pytest.mark.parametrize("metadata_version", [MetadataVersion.IBP_2_0_IV1, LATEST_PRODUCTION])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([T0, TopicPartition("t", 2**31 - 1), TopicPartition("u", 1)]),
            st.integers(-(2**63), 2**63 - 1),
            st.integers(-1, 1),
            st.sampled_from(["", "é"]),
            st.sampled_from([None, T]),
        )
    )
)
def test_records_of_one_request_are_those_of_each_offset(
    metadata_version: MetadataVersion, commits: list[tuple[TopicPartition, int, int, str, int | None]]
) -> None:
    records = OffsetRecords("g", metadata_version)
    for key, position, epoch, metadata, expire_ms in commits:
        offset = OffsetAndMetadata(position, T, epoch, metadata, expire_ms)
        expected = offset_commit_key("g", key), offset_commit_value(offset, metadata_version)
        assert records.key_and_value(key, offset) == expected


def test_offset_value_with_a_retention_of_its_own_is_version_1_and_has_no_leader_epoch() -> None:
    offset = OffsetAndMetadata(
        offset=42, leader_epoch=7, metadata="x", commit_timestamp_ms=T, expire_timestamp_ms=T + 1
    )
    value = offset_commit_value(offset)
    assert value == bytes.fromhex("0001 000000000000002a 000178 0000018bcfe56800 0000018bcfe56801")
    assert read_offset_value(value) == OffsetAndMetadata(
        offset=42, leader_epoch=-1, metadata="x", commit_timestamp_ms=T, expire_timestamp_ms=T + 1
    )


@pytest.mark.parametrize(
    ("metadata_version", "offset_version", "group_version"),
    [
        (MetadataVersion.IBP_0_10_0_IV1, 1, 0),
        (MetadataVersion.IBP_2_0_IV1, 1, 1),
        (MetadataVersion.IBP_2_1_IV0, 2, 2),
        (MetadataVersion.IBP_2_2_IV1, 3, 2),
        (MetadataVersion.IBP_2_3_IV0, 3, 3),
    ],
)
def test_values_are_of_the_version_that_the_inter_broker_protocol_lays_down(
    metadata_version: MetadataVersion, offset_version: int, group_version: int
) -> None:
    offset = OffsetAndMetadata(offset=42, leader_epoch=7, commit_timestamp_ms=T)
    value = offset_commit_value(offset, metadata_version)
    assert int.from_bytes(value[:2], "big") == offset_version
    assert read_offset_value(value) == offset._replace(leader_epoch=7 if offset_version >= 3 else -1)
    stored = group_metadata_value(
        protocol_type="consumer",
        generation_id=7,
        protocol_name="range",
        leader_id="m",
        since_ms=T,
        members=[member()],
        assignment={member().member_id: b"ass"},
        metadata_version=metadata_version,
    )
    assert int.from_bytes(stored[:2], "big") == group_version
    read = read_group_value(stored)
    assert (read.generation, read.members[0].group_instance_id is None) == (7, group_version < 3)


def test_group_value_is_kafkas() -> None:
    assert stored_group([member()]) == bytes.fromhex(
        "0003"
        "0008 636f6e73756d6572"  # protocol type
        "00000007"  # generation
        "0005 72616e6765"  # protocol
        "0003 6d2d31"  # leader
        "0000018bcfe56800"  # current state timestamp
        "00000001"
        "0003 6d2d31"  # member id
        "0001 69"  # group instance id
        "0001 63"  # client id
        "0002 2f68"  # client host
        "00000005 00000006"  # rebalance and session timeout
        "00000003 737562"  # subscription
        "00000003 617373"  # assignment
    )


def test_value_of_an_empty_group_is_kafkas() -> None:
    assert stored_group([]) == bytes.fromhex("0003 0008636f6e73756d6572 00000007 ffff ffff 0000018bcfe56800 00000000")


def test_members_come_back_speaking_the_chosen_protocol_only() -> None:
    value = read_group_value(stored_group([member()]))
    loaded = member_from_record(value, value.members[0], 3)
    assert loaded.protocols == (("range", b"sub"),)
    assert (loaded.rebalance_timeout_ms, loaded.session_timeout_ms) == (5, 6)
    assert (loaded.group_instance_id, loaded.assignment) == ("i", b"ass")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_group_value_is_read(version: int) -> None:
    record = MemberMetadataRecord(member_id="m", session_timeout=6, rebalance_timeout=5, subscription=b"s")
    value = GroupMetadataValue(protocol_type="consumer", protocol="range", leader="m", members=[record])
    data = version.to_bytes(2, "big") + encode(value, version)
    read = read_group_value(data)
    assert read.members[0].member_id == "m"
    loaded = member_from_record(read, read.members[0], version)
    assert loaded.rebalance_timeout_ms == (6 if version == 0 else 5)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_an_offset_value_is_read(version: int) -> None:
    data = version.to_bytes(2, "big") + encode(OffsetCommitValue(offset=9, metadata="m", commit_timestamp=T), version)
    assert read_offset_value(data) == OffsetAndMetadata(offset=9, metadata="m", commit_timestamp_ms=T)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\5" + bytes(40), b"\xff\xff" + bytes(40), b"\0\3\0\0"])
def test_values_that_make_no_sense_are_refused(data: bytes) -> None:
    with pytest.raises(CoordinatorRecordError):
        read_offset_value(data)
    with pytest.raises(CoordinatorRecordError):
        read_group_value(data)


def test_kinds_of_keys() -> None:
    offset_key, group_key = offset_commit_key("g", T0), group_metadata_key("g")
    assert is_offset_key(offset_key)
    assert not is_group_key(offset_key)
    assert is_group_key(group_key)
    assert not is_offset_key(group_key)
    # Version 3 and later are keys of the new group coordinator.
    assert not is_offset_key(b"\0\3\0\1g")
    assert not is_group_key(b"\0\3\0\1g")


def test_offset_keys_of_version_0_are_the_same_key() -> None:
    old = b"\0\0" + offset_commit_key("g", T0)[2:]
    assert normalized_key(old) == offset_commit_key("g", T0)
    assert normalized_key(group_metadata_key("g")) == group_metadata_key("g")


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**31 - 1))
def test_keys_round_trip(group_id: str, topic: str, partition: int) -> None:
    topic_partition = TopicPartition(topic, partition)
    assert read_offset_key(offset_commit_key(group_id, topic_partition)) == (group_id, topic_partition)
    assert read_group_key(group_metadata_key(group_id)) == group_id


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=30),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
)
def test_offset_values_round_trip(
    offset: int, epoch: int, metadata: str, commit_ms: int, expire_ms: int | None
) -> None:
    value = OffsetAndMetadata(
        offset=offset,
        leader_epoch=epoch if expire_ms is None else -1,
        metadata=metadata,
        commit_timestamp_ms=commit_ms,
        expire_timestamp_ms=expire_ms,
    )
    assert read_offset_value(offset_commit_value(value)) == value


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscriptions_of_any_version_are_understood(version: int) -> None:
    data = version.to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=["t", "u"]), version)
    assert subscribed_topics_of(data) == ["t", "u"]
    assert subscribed_topics_of(b"\0\x63" + data[2:]) == ["t", "u"]


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0", b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\1\0\5abc", b"\0\0\x7f\xff\xff\xff"]
)
def test_subscriptions_that_make_no_sense_are_unknown(data: bytes) -> None:
    assert subscribed_topics_of(data) is None


@given(st.binary(max_size=40))
def test_no_subscription_is_an_accident(data: bytes) -> None:
    subscribed_topics_of(data)
