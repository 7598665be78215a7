"""AlterPartitionReassignments (API key 45), version 0, flexible.

Starts reassignments of partitions; null replicas cancel one (KIP-455).
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, int16, int32, string


class ReassignablePartition(Struct):
    partition_index: int = int32("0+")
    replicas: Sequence[int] | None = array(INT32, "0+", nullable="0+", default=None, packed=True)


class ReassignableTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[ReassignablePartition] = array(ReassignablePartition, "0+", packed=True)


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0", flexible="0+"):
    timeout_ms: int = int32("0+", default=60000)
    topics: Sequence[ReassignableTopic] = array(ReassignableTopic, "0+", packed=True)


class ReassignablePartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = string("0+")
    partitions: Sequence[ReassignablePartitionResponse] = array(ReassignablePartitionResponse, "0+")


class AlterPartitionReassignmentsResponse(Response, key=45, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: Sequence[ReassignableTopicResponse] = array(ReassignableTopicResponse, "0+")
