"""CreatePartitions (API key 37), versions 0-3, flexible from 2.

Adds partitions to topics.

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
v3   THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(INT32, "0+")


class CreatePartitionsTopic(Struct):
    name: str = string("0+")
    count: int = int32("0+")
    assignments: Sequence[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, "0+", nullable="0+", packed=True
    )


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    topics: Sequence[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+", packed=True)
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


class CreatePartitionsTopicResult(Struct):
    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    results: Sequence[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")
