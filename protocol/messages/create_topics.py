"""CreateTopics (API key 19), versions 0-7, flexible from 5.

Creates topics.

v1   validate_only; error messages
v2   throttle_time_ms in the response
v3   the response goes out before the client is throttled (KIP-219)
v4   -1 for partitions and replication factor means the broker's default (KIP-464)
v5   flexible; the response describes the new topic: partitions, replication factor, configuration (KIP-525)
v6   THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599)
v7   topic_id in the response (KIP-516)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class CreatableReplicaAssignment(Struct):
    partition_index: int = int32("0+")
    broker_ids: list[int] = array(INT32, "0+")


class CreatableTopicConfig(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


class CreatableTopic(Struct):
    name: str = string("0+")
    num_partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    assignments: Sequence[CreatableReplicaAssignment] = array(CreatableReplicaAssignment, "0+", packed=True)
    configs: Sequence[CreatableTopicConfig] = array(CreatableTopicConfig, "0+", packed=True)


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    topics: Sequence[CreatableTopic] = array(CreatableTopic, "0+", packed=True)
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = boolean("1+")


class CreatableTopicConfigs(Struct):
    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


class CreatableTopicResult(Struct):
    name: str = string("0+")
    topic_id: bytes = uuid("7+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", ignorable=True, tag=0, tagged="5+")
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, "5+", nullable="5+", ignorable=True)


class CreateTopicsResponse(Response, key=19, versions="0-7", flexible="5+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: Sequence[CreatableTopicResult] = array(CreatableTopicResult, "0+")
