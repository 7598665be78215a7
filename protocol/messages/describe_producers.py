"""DescribeProducers (API key 61), version 0, flexible.

Describes the producers a partition leader remembers (KIP-664).
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    name: str = string("0+")
    partition_indexes: Sequence[int] = array(INT32, "0+", packed=True)


class DescribeProducersRequest(Request, key=61, versions="0", flexible="0+"):
    topics: Sequence[TopicRequest] = array(TopicRequest, "0+", packed=True)


class ProducerState(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


class PartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: Sequence[ProducerState] = array(ProducerState, "0+")


class TopicResponse(Struct):
    name: str = string("0+")
    partitions: Sequence[PartitionResponse] = array(PartitionResponse, "0+")


class DescribeProducersResponse(Response, key=61, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    topics: Sequence[TopicResponse] = array(TopicResponse, "0+")
