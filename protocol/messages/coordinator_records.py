"""Keys and values of the internal topics `__consumer_offsets` and `__transaction_state`.

Each is a message behind an int16 version. For keys the version is the record type: 0 and 1 are offset commits, 2 is
group metadata; higher ones belong to newer groups and are skipped. In ZooKeeper mode the broker writes offset values v3
(v1 when the client asked for an explicit retention), group values v3 and transaction values v0. A null value is a
tombstone.

OffsetCommitValue    v1 expire_timestamp, in this version alone; v3 leader_epoch; v4 flexible
GroupMetadataValue   v1 rebalance_timeout; v2 current_state_timestamp; v3 group_instance_id; v4 flexible
TransactionLogValue  v1 flexible
"""

from __future__ import annotations

from odradek.protocol.codec.schema import INT32, Message, Struct, array, byte_string, int8, int16, int32, int64, string


class OffsetCommitKey(Message, versions="0-1", flexible="none"):
    group: str = string("0-1")
    topic: str = string("0-1")
    partition: int = int32("0-1")


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)


class GroupMetadataKey(Message, versions="2", flexible="none"):
    group: str = string("2")


class MemberMetadata(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = byte_string("0+")
    assignment: bytes = byte_string("0+")


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")


class TransactionLogKey(Message, versions="0", flexible="none"):
    transactional_id: str = string("0")


class PartitionsSchema(Struct):
    topic: str = string("0+")
    partition_ids: list[int] = array(INT32, "0+")


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
