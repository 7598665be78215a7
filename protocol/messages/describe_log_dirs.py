"""DescribeLogDirs (API key 35), versions 0-4, flexible from 2.

Describes the log directories of a broker and the replicas in them (KIP-113).

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
v3   an error code for the whole response
v4   total and usable bytes of the volume (KIP-827)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class DescribeLogDirsRequest(Request, key=35, versions="0-4", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, "0+", nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = boolean("0+")


class DescribeLogDirsTopic(Struct):
    name: str = string("0+")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition, "0+")


class DescribeLogDirsResult(Struct):
    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)


class DescribeLogDirsResponse(Response, key=35, versions="0-4", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult, "0+")
