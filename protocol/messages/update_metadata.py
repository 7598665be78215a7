"""UpdateMetadata (API key 6), versions 0-8, flexible from 6.

The controller tells every broker who leads what and which brokers are alive.

v1   several endpoints for each broker, in place of one host and port
v2   rack
v3   listener names
v4   offline_replicas
v5   broker_epoch fences restarted brokers (KIP-380); partitions grouped by topic
v6   flexible
v7   topic ids (KIP-516)
v8   is_kraft_controller, during a migration (KIP-866); type as in LeaderAndIsr
"""

from __future__ import annotations

from odradek.protocol.codec.limits import MAX_CLUSTER_VALUES
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
    int64,
    string,
    uuid,
)


class UpdateMetadataPartitionState(Struct):
    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32("0+")
    controller_epoch: int = int32("0+")
    leader: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(INT32, "0+")
    zk_version: int = int32("0+")
    replicas: list[int] = array(INT32, "0+")
    offline_replicas: list[int] = array(INT32, "4+", ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: str = string("5+")
    topic_id: bytes = uuid("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "5+")


class UpdateMetadataEndpoint(Struct):
    port: int = int32("1+")
    host: str = string("1+")
    listener: str = string("3+", ignorable=True)
    security_protocol: int = int16("1+")


class UpdateMetadataBroker(Struct):
    id: int = int32("0+")
    v0_host: str = string("0", ignorable=True)
    v0_port: int = int32("0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", nullable="0+", ignorable=True)


class UpdateMetadataRequest(Request, key=6, versions="0-8", flexible="6+", max_values=MAX_CLUSTER_VALUES):
    controller_id: int = int32("0+")
    is_kraft_controller: bool = boolean("8+")
    type: int = int8("8+", tag=0, tagged="8+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "0-4")
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker, "0+")


class UpdateMetadataResponse(Response, key=6, versions="0-8", flexible="6+"):
    error_code: int = int16("0+")
