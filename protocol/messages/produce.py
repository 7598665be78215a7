"""Produce (API key 0), versions 0-11, flexible from 9.

Appends record batches to partitions. With acks=0 there is no response at all.

v1   throttle_time_ms in the response
v2   log_append_time_ms in the response
v3   transactional_id; exactly one batch of magic 2 for each partition
v4   KAFKA_STORAGE_ERROR may be returned
v5   log_start_offset in the response
v6   the response goes out before the client is throttled, not after (KIP-219)
v7   zstd is allowed (KIP-110)
v8   record_errors and error_message say which records made a batch fail (KIP-467)
v9   flexible
v10  current_leader and node_endpoints spare the client a Metadata request after a leader change (KIP-951)
v11  TRANSACTION_ABORTABLE may be returned (KIP-890)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import (
    Records,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
)


class PartitionProduceData(Struct):
    index: int = int32("0+")
    records: Records | None = record_set("0+", nullable="0+")


class TopicProduceData(Struct):
    name: str = string("0+")
    partition_data: Sequence[PartitionProduceData] = array(PartitionProduceData, "0+", packed=True)


class ProduceRequest(Request, key=0, versions="0-11", flexible="9+"):
    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: Sequence[TopicProduceData] = array(TopicProduceData, "0+", packed=True)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0, tagged="10+")


class TopicProduceResponse(Struct):
    name: str = string("0+")
    partition_responses: Sequence[PartitionProduceResponse] = array(PartitionProduceResponse, "0+")


class NodeEndpoint(Struct):
    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


class ProduceResponse(Response, key=0, versions="0-11", flexible="9+"):
    responses: Sequence[TopicProduceResponse] = array(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0, tagged="10+")
