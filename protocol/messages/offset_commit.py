"""OffsetCommit (API key 8), versions 0-9, flexible from 8.

Stores the offsets of a group.

v1   generation and member; a timestamp for each partition, in this version alone
v2   retention_time_ms in place of the timestamps
v3   throttle_time_ms in the response
v4   the response goes out before the client is throttled (KIP-219)
v5   no retention_time_ms any more: the broker's configuration decides (KIP-211)
v6   leader epoch of the committed offset (KIP-320)
v7   group_instance_id of static members (KIP-345)
v8   flexible
v9   members of the new group protocol; STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND may be returned (KIP-848)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string("0+", nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, "0+", packed=True)


class OffsetCommitRequest(Request, key=8, versions="0-9", flexible="8+"):
    group_id: str = string("0+")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: Sequence[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, "0+", packed=True)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetCommitResponseTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, "0+")


class OffsetCommitResponse(Response, key=8, versions="0-9", flexible="8+"):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: Sequence[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, "0+")
