"""The requests that can name many partitions, topics or groups, and those that ask for all there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

MakeRequest: TypeAlias = Callable[[Sequence[str], Sequence[int]], Request]
"""A request about these partitions of each of these topics."""

TIMEOUT_MS = 60_000
TOPIC_RESOURCE = 2
PER_TOPIC = 100
"""Partitions that each topic has."""
UNKNOWN_EPOCH, LEADER_DURING_DELETE = -1, -2


def ask(client: RawClient, request: Request, version: int) -> None:
    """Send a request and wait for its answer, which is not decoded."""
    client.send_frame(encode_request(RequestHeader(request.API_KEY, version, 1, "bench"), request))
    client.receive_frame()


def requests_about_all(names: Sequence[str]) -> Iterator[tuple[str, Request, int]]:
    yield "Metadata of all", build(ApiKey.METADATA, topics=None), 12
    yield "DescribeLogDirs of all", build(ApiKey.DESCRIBE_LOG_DIRS, topics=None), 4
    yield "ListPartitionReassignments of all", build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None), 0
    yield "ElectLeaders of all", build(ApiKey.ELECT_LEADERS, topic_partitions=None, timeout_ms=TIMEOUT_MS), 2
    resources = [{"resource_type": TOPIC_RESOURCE, "resource_name": name} for name in names]
    asked = [{**resource, "configuration_keys": None} for resource in resources]
    yield "DescribeConfigs of the topics", build(ApiKey.DESCRIBE_CONFIGS, resources=asked, include_synonyms=True), 4
    altered = [
        {**resource, "configs": [{"name": "retention.ms", "config_operation": 0, "value": "7200000"}]}
        for resource in resources
    ]
    yield "IncrementalAlterConfigs of the topics", build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=altered), 1


def _nested(topics: Sequence[str], indexes: Sequence[int], name: str, partition: str, **rest: object) -> list[object]:
    return [{name: topic, "partitions": [{partition: index, **rest} for index in indexes]} for topic in topics]


def _plain(topics: Sequence[str], indexes: Sequence[int], name: str, partitions: str) -> list[object]:
    return [{name: topic, partitions: list(indexes)} for topic in topics]


def _produce(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    records = bytes(build_batch([SimpleRecord(int(time.time() * 1000), b"key", b"value")]))
    data = [
        {"name": topic, "partition_data": [{"index": index, "records": records} for index in indexes]}
        for topic in topics
    ]
    return build(ApiKey.PRODUCE, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=data)


def _fetch(session_epoch: int, offset: int) -> MakeRequest:
    def make(topics: Sequence[str], indexes: Sequence[int]) -> Request:
        wanted = _nested(topics, indexes, "topic", "partition", fetch_offset=offset, partition_max_bytes=1 << 20)
        return build(
            ApiKey.FETCH,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=50 << 20,
            session_epoch=session_epoch,
            topics=wanted,
        )

    return make


def _offsets_of(key: ApiKey, **fields: object) -> MakeRequest:
    def make(topics: Sequence[str], indexes: Sequence[int]) -> Request:
        wanted = _nested(topics, indexes, "name", "partition_index", committed_offset=1, committed_metadata="")
        return build(key, group_id="group", topics=wanted, **fields)

    return make


def _markers(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    marker = {"producer_id": 77, "topics": _plain(topics, indexes, "name", "partition_indexes")}
    return build(ApiKey.WRITE_TXN_MARKERS, markers=[marker])


def _reassign(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    wanted = _nested(topics, indexes, "name", "partition_index", replicas=[0])
    return build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, timeout_ms=TIMEOUT_MS, topics=wanted)


def _verify(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    asked = {"transactional_id": "id", "verify_only": True, "topics": _plain(topics, indexes, "name", "partitions")}
    return build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[asked])


def _names(key: ApiKey, field: str) -> MakeRequest:
    """As many names of something that does not exist."""

    def make(topics: Sequence[str], indexes: Sequence[int]) -> Request:
        return build(key, **{field: [f"{topic}-{index}" for topic in topics for index in indexes]})

    return make


def _unknown_topics(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    return build(ApiKey.METADATA, topics=[{"name": f"{topic}-{index}"} for topic in topics for index in indexes])


def _invalid_topics(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    named = [
        {"name": f"{topic}!{index}", "num_partitions": 1, "replication_factor": 1}
        for topic in topics
        for index in indexes
    ]
    return build(ApiKey.CREATE_TOPICS, topics=named, timeout_ms=TIMEOUT_MS)


def _leader_and_isr(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    """The state that the controller has sent already: nothing changes. Missing partitions are on another broker."""
    state = {"leader": 0, "leader_epoch": 0, "isr": [0], "replicas": [1]}
    states = [
        {"topic_name": topic, "partition_states": [{"partition_index": index, **state} for index in indexes]}
        for topic in topics
    ]
    return build(
        ApiKey.LEADER_AND_ISR, controller_id=0, controller_epoch=1, broker_epoch=UNKNOWN_EPOCH, topic_states=states
    )


def _update_metadata(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    """The state that the controller has sent already; partitions that do not exist are deleted."""
    state = {"leader_epoch": 0, "isr": [0], "replicas": [0]}
    states = [
        {
            "topic_name": topic,
            "partition_states": [
                {"partition_index": index, "leader": 0 if index < PER_TOPIC else LEADER_DURING_DELETE, **state}
                for index in indexes
            ],
        }
        for topic in topics
    ]
    endpoints = [{"host": "127.0.0.1", "port": 9092, "listener": "PLAINTEXT"}]
    return build(
        ApiKey.UPDATE_METADATA,
        controller_id=0,
        controller_epoch=1,
        broker_epoch=UNKNOWN_EPOCH,
        topic_states=states,
        live_brokers=[{"id": 0, "endpoints": endpoints}],
    )


def _stop_replica(topics: Sequence[str], indexes: Sequence[int]) -> Request:
    """In an epoch that has passed: nothing is stopped."""
    states = [
        {
            "topic_name": topic,
            "partition_states": [
                {"partition_index": index, "leader_epoch": 0, "delete_partition": False}
                for index in indexes
                if index >= PER_TOPIC
            ],
        }
        for topic in topics
    ]
    return build(
        ApiKey.STOP_REPLICA, controller_id=0, controller_epoch=1, broker_epoch=UNKNOWN_EPOCH, topic_states=states
    )


LARGE_REQUESTS: Sequence[tuple[str, MakeRequest, int]] = (
    ("Produce", _produce, 9),
    ("Fetch without a session", _fetch(-1, 0), 12),
    ("Fetch that begins a session", _fetch(0, 0), 12),
    ("Fetch at offsets out of range", _fetch(-1, 99), 12),
    (
        "ListOffsets, latest",
        lambda t, i: build(
            ApiKey.LIST_OFFSETS, replica_id=-1, topics=_nested(t, i, "name", "partition_index", timestamp=-1)
        ),
        7,
    ),
    (
        "ListOffsets by time",
        lambda t, i: build(
            ApiKey.LIST_OFFSETS, replica_id=-1, topics=_nested(t, i, "name", "partition_index", timestamp=1)
        ),
        7,
    ),
    (
        "OffsetForLeaderEpoch",
        lambda t, i: build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=_nested(t, i, "topic", "partition", leader_epoch=0)),
        4,
    ),
    (
        "DeleteRecords",
        lambda t, i: build(
            ApiKey.DELETE_RECORDS, timeout_ms=TIMEOUT_MS, topics=_nested(t, i, "name", "partition_index", offset=0)
        ),
        2,
    ),
    ("OffsetCommit", _offsets_of(ApiKey.OFFSET_COMMIT, generation_id_or_member_epoch=-1), 8),
    (
        "OffsetFetch",
        lambda t, i: build(
            ApiKey.OFFSET_FETCH, groups=[{"group_id": "group", "topics": _plain(t, i, "name", "partition_indexes")}]
        ),
        8,
    ),
    ("OffsetFetch of all", lambda t, i: build(ApiKey.OFFSET_FETCH, groups=[{"group_id": "group", "topics": None}]), 8),
    (
        "OffsetDelete",
        lambda t, i: build(ApiKey.OFFSET_DELETE, group_id="group", topics=_nested(t, i, "name", "partition_index")),
        0,
    ),
    ("TxnOffsetCommit", _offsets_of(ApiKey.TXN_OFFSET_COMMIT, transactional_id="id", producer_id=7), 3),
    ("AddPartitionsToTxn", _verify, 4),
    ("WriteTxnMarkers", _markers, 1),
    (
        "DescribeProducers",
        lambda t, i: build(ApiKey.DESCRIBE_PRODUCERS, topics=_plain(t, i, "name", "partition_indexes")),
        0,
    ),
    ("DescribeLogDirs", lambda t, i: build(ApiKey.DESCRIBE_LOG_DIRS, topics=_plain(t, i, "topic", "partitions")), 4),
    (
        "ElectLeaders",
        lambda t, i: build(
            ApiKey.ELECT_LEADERS, timeout_ms=TIMEOUT_MS, topic_partitions=_plain(t, i, "topic", "partitions")
        ),
        2,
    ),
    ("AlterPartitionReassignments", _reassign, 0),
    (
        "ListPartitionReassignments",
        lambda t, i: build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=_plain(t, i, "name", "partition_indexes")),
        0,
    ),
    (
        "AlterReplicaLogDirs",
        lambda t, i: build(
            ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=[{"path": "/nowhere", "topics": _plain(t, i, "name", "partitions")}]
        ),
        2,
    ),
    ("LeaderAndIsr", _leader_and_isr, 7),
    ("UpdateMetadata", _update_metadata, 8),
    ("StopReplica of what is not there", _stop_replica, 4),
    ("Metadata of topics that are not there", _unknown_topics, 12),
    ("CreateTopics with names that are invalid", _invalid_topics, 7),
    ("DeleteTopics that are not there", _names(ApiKey.DELETE_TOPICS, "topic_names"), 5),
    ("FindCoordinator", _names(ApiKey.FIND_COORDINATOR, "coordinator_keys"), 4),
    ("DescribeGroups that are not there", _names(ApiKey.DESCRIBE_GROUPS, "groups"), 5),
    ("DeleteGroups that are not there", _names(ApiKey.DELETE_GROUPS, "groups_names"), 2),
    ("DescribeTransactions that are not there", _names(ApiKey.DESCRIBE_TRANSACTIONS, "transactional_ids"), 0),
)
