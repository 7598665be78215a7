"""DeleteRecords (API key 21), versions 0-2, flexible from 2.

Deletes records up to an offset, by moving the start of the log. Offset -1 is the high watermark.

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    partition_index: int = int32("0+")
    offset: int = int64("0+")


class DeleteRecordsTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+", packed=True)


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    topics: Sequence[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+", packed=True)
    timeout_ms: int = int32("0+")


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = int32("0+")
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


class DeleteRecordsTopicResult(Struct):
    name: str = string("0+")
    partitions: Sequence[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+")


class DeleteRecordsResponse(Response, key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    topics: Sequence[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+")
