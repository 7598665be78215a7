"""OffsetDelete (API key 47), version 0, no flexible version.

Deletes committed offsets of a group (KIP-496).
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32("0+")


class OffsetDeleteRequestTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+", packed=True)


class OffsetDeleteRequest(Request, key=47, versions="0", flexible="none"):
    group_id: str = string("0+")
    topics: Sequence[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+", packed=True)


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetDeleteResponseTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+")


class OffsetDeleteResponse(Response, key=47, versions="0", flexible="none"):
    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: Sequence[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+")
