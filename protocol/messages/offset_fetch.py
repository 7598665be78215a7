"""OffsetFetch (API key 9), versions 0-9, flexible from 6.

Reads the committed offsets of groups. v0 to v7 ask for one group, from v8 on for many.

v0   reads from ZooKeeper
v1   reads from the offsets topic
v2   null topics ask for all; an error code for the whole response
v3   throttle_time_ms in the response
v4   the response goes out before the client is throttled (KIP-219)
v5   leader epoch of the committed offset (KIP-320)
v6   flexible
v7   require_stable: UNSTABLE_OFFSET_COMMIT while a transaction is open (KIP-447)
v8   many groups in one request (KIP-709)
v9   member id and epoch, checked when the group uses the new protocol (KIP-848)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, int64, string


class OffsetFetchRequestTopic(Struct):
    name: str = string("0-7")
    partition_indexes: Sequence[int] = array(INT32, "0-7", packed=True)


class OffsetFetchRequestTopics(Struct):
    name: str = string("8+")
    partition_indexes: Sequence[int] = array(INT32, "8+", packed=True)


class OffsetFetchRequestGroup(Struct):
    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: Sequence[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, "8+", nullable="8+", packed=True
    )


class OffsetFetchRequest(Request, key=9, versions="0-9", flexible="6+"):
    group_id: str = string("0-7")
    topics: Sequence[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7", packed=True
    )
    groups: Sequence[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+", packed=True)
    require_stable: bool = boolean("7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


class OffsetFetchResponseTopic(Struct):
    name: str = string("0-7")
    partitions: Sequence[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7")


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


class OffsetFetchResponseTopics(Struct):
    name: str = string("8+")
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+")


class OffsetFetchResponseGroup(Struct):
    group_id: str = string("8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+", kept=True, repeated=True)
    error_code: int = int16("8+")


class OffsetFetchResponse(Response, key=9, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: Sequence[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: Sequence[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")
