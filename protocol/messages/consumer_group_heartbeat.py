"""ConsumerGroupHeartbeat (API key 68), version 0, flexible.

The heartbeat of the new consumer group protocol (KIP-848): joins (epoch 0), leaves (-1, or -2 for static members), and
reports what is owned. Null fields have not changed since the last heartbeat.
"""

from __future__ import annotations

from odradek.protocol.codec.schema import (
    INT32,
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class TopicPartitions(Struct):
    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(INT32, "0+")


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0", flexible="0+"):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(STRING, "0+", nullable="0+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupHeartbeatResponse(Response, key=68, versions="0", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct(Assignment, "0+", nullable="0+", default=None)
