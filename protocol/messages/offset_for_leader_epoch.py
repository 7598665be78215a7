"""OffsetForLeaderEpoch (API key 23), versions 0-4, flexible from 4.

Where a leader epoch ended in the leader's log; followers and consumers truncate by it (KIP-101, KIP-320).

v1   leader epoch in the response: the largest one that is not larger than the requested one (KIP-279)
v2   current_leader_epoch fences; throttle_time_ms in the response (KIP-320)
v3   replica_id; its default -2 is a reader that may see past the high watermark
v4   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32("0+")


class OffsetForLeaderTopic(Struct):
    topic: str = string("0+")
    partitions: Sequence[OffsetForLeaderPartition] = array(OffsetForLeaderPartition, "0+", packed=True)


class OffsetForLeaderEpochRequest(Request, key=23, versions="0-4", flexible="4+"):
    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: Sequence[OffsetForLeaderTopic] = array(OffsetForLeaderTopic, "0+", packed=True)


class EpochEndOffset(Struct):
    error_code: int = int16("0+")
    partition: int = int32("0+")
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64("0+", default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = string("0+")
    partitions: Sequence[EpochEndOffset] = array(EpochEndOffset, "0+")


class OffsetForLeaderEpochResponse(Response, key=23, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: Sequence[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult, "0+")
