"""ListOffsets (API key 2), versions 0-9, flexible from 6.

Finds offsets by timestamp. Negative timestamps are names: -1 latest, -2 earliest, and those of v7 to v9.

v1   one offset and its timestamp for each partition, in place of a list of offsets
v2   isolation_level; throttle_time_ms in the response
v3   the response goes out before the client is throttled (KIP-219)
v4   current_leader_epoch fences; the answer carries the epoch of the offset (KIP-320)
v5   OFFSET_NOT_AVAILABLE may be returned
v6   flexible
v7   -3: the offset of the record with the highest timestamp (KIP-734)
v8   -4: the first offset in the local log (KIP-405)
v9   -5: the last offset in tiered storage (KIP-1005)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT64, Request, Response, Struct, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = int32("0+")
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64("0+")
    max_num_offsets: int = int32("0", default=1)


class ListOffsetsTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[ListOffsetsPartition] = array(ListOffsetsPartition, "0+", packed=True)


class ListOffsetsRequest(Request, key=2, versions="0-9", flexible="6+"):
    replica_id: int = int32("0+")
    isolation_level: int = int8("2+")
    topics: Sequence[ListOffsetsTopic] = array(ListOffsetsTopic, "0+", packed=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    old_style_offsets: list[int] = array(INT64, "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = string("0+")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse, "0+")


class ListOffsetsResponse(Response, key=2, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: Sequence[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse, "0+")
