"""Records of the newer consumer groups (KIP-848) in `__consumer_offsets`: key versions 3 to 8.

A broker in ZooKeeper mode has no such groups and passes over their records; tools that look into a log of another
broker show them. As in `coordinator_records`, the version of the key is the type of the record.
"""

from __future__ import annotations

from odradek.protocol.codec.schema import (
    INT32,
    STRING,
    Message,
    Struct,
    array,
    byte_string,
    int8,
    int32,
    string,
    struct,
    uuid,
)


class ConsumerGroupMetadataKey(Message, versions="3", flexible="none"):
    group_id: str = string("3")


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = int32("0+")


class ConsumerGroupPartitionMetadataKey(Message, versions="4", flexible="none"):
    group_id: str = string("4")


class PartitionMetadata(Struct):
    partition: int = int32("0+")
    racks: list[str] = array(STRING, "0+")


class TopicMetadata(Struct):
    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata, "0+")


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    topics: list[TopicMetadata] = array(TopicMetadata, "0+")


class ConsumerGroupMemberMetadataKey(Message, versions="5", flexible="none"):
    group_id: str = string("5")
    member_id: str = string("5")


class ClassicProtocol(Struct):
    name: str = string("0+")
    metadata: bytes = byte_string("0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol, "0+")


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(STRING, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, "0+", nullable="0+", default=None, tag=0, tagged="0+"
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="6", flexible="none"):
    group_id: str = string("6")


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = int32("0+")


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="7", flexible="none"):
    group_id: str = string("7")
    member_id: str = string("7")


class TopicPartition(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="8", flexible="none"):
    group_id: str = string("8")
    member_id: str = string("8")


class TopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions, "0+")
