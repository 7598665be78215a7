"""Metadata (API key 3), versions 0-12, flexible from 9.

Describes brokers, topics and partitions. `topics=None` asks for all topics, which v0 writes as an empty list; from v1
on an empty list asks for none.

v1   rack, controller_id, is_internal; null topics
v2   cluster_id
v3   throttle_time_ms
v4   allow_auto_topic_creation (before: always allowed)
v5   offline_replicas
v6   the response goes out before the client is throttled (KIP-219)
v7   leader_epoch of partitions (KIP-320)
v8   authorized operations on request (KIP-430)
v9   flexible
v10  topic_id, and a name that may be null; asking *by* id is not to be relied on yet
v11  cluster_authorized_operations move to DescribeCluster (KIP-700)
v12  asking by topic id works (KIP-516)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string("0+", nullable="10+")


class MetadataRequest(Request, key=3, versions="0-12", flexible="9+"):
    topics: Sequence[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+", packed=True)
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


class MetadataResponseBroker(Struct):
    node_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(INT32, "0+")
    isr_nodes: list[int] = array(INT32, "0+")
    offline_replicas: list[int] = array(INT32, "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="12+")
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, "0+", kept=True)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


class MetadataResponse(Response, key=3, versions="0-12", flexible="9+"):
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: Sequence[MetadataResponseTopic] = array(MetadataResponseTopic, "0+")
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
