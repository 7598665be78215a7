"""Requests with the id of a replica, a broker or a controller that the client is not: every such API in every version.

Apache Kafka demands ClusterAction of a Fetch with the id of a replica, and of all that controllers and brokers send.
ListOffsets and OffsetForLeaderEpoch are answered to whoever may describe the topic, whatever id they have.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.support.wire.requests import build

CLUSTER: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
TOPIC_REFUSED: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED})
ANSWERED: Final[frozenset[ErrorCode]] = frozenset()
LARGE_EPOCH: Final = 2**20
"""Above that of any leader and controller."""
PRODUCER: Final = {"producer_id": 1, "producer_epoch": 0}


class Forged(NamedTuple):
    request: Request
    version: int
    expected: frozenset[ErrorCode]
    """The only errors that it may be answered with."""


class Topics(NamedTuple):
    shared: str
    """The client may write to it and read it."""
    shared_id: bytes
    foreign: str
    """The client has no rights for it."""


def forged_requests(topics: Topics, rng: random.Random) -> Iterator[Forged]:
    replica = rng.choice((0, 1, 2, rng.randrange(2**31)))
    for version in _versions(ApiKey.FETCH):
        yield Forged(_fetch(topics, replica, rng.randrange(2**31), version), version, TOPIC_REFUSED)
    for name, expected in ((topics.shared, ANSWERED), (topics.foreign, TOPIC_REFUSED)):
        yield from _about_offsets(name, replica, expected)
    yield from _of_controllers(topics, replica)
    yield from _of_brokers(topics, replica)


def _versions(api: ApiKey) -> range:
    return range(API[api].min_version, API[api].max_version + 1)


def _fetch(topics: Topics, replica: int, replica_epoch: int, version: int) -> Request:
    topic = {"topic": topics.shared} if version < 13 else {"topic_id": topics.shared_id}
    fetched = {**topic, "partitions": [{"partition": 0, "fetch_offset": 2**40, "partition_max_bytes": 1}]}
    if version < 15:
        return build(ApiKey.FETCH, replica_id=replica, max_wait_ms=0, topics=[fetched])
    state = {"replica_id": replica, "replica_epoch": replica_epoch}
    return build(ApiKey.FETCH, replica_state=state, max_wait_ms=0, topics=[fetched])


def _about_offsets(topic: str, replica: int, expected: frozenset[ErrorCode]) -> Iterator[Forged]:
    for version in _versions(ApiKey.LIST_OFFSETS):
        asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1, "max_num_offsets": 1}]}]
        if version:
            asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        yield Forged(build(ApiKey.LIST_OFFSETS, replica_id=replica, topics=asked), version, expected)
    epochs = [{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
    for version in _versions(ApiKey.OFFSET_FOR_LEADER_EPOCH):
        named = {"replica_id": replica} if version >= 3 else {}
        yield Forged(build(ApiKey.OFFSET_FOR_LEADER_EPOCH, **named, topics=epochs), version, expected)


def _of_controllers(topics: Topics, replica: int) -> Iterator[Forged]:
    controller = {"controller_id": replica, "controller_epoch": LARGE_EPOCH}
    state = {
        "partition_index": 0,
        "controller_epoch": LARGE_EPOCH,
        "leader": replica,
        "leader_epoch": LARGE_EPOCH,
        "isr": [replica],
        "replicas": [replica],
    }
    named = {"topic_name": topics.shared}
    grouped = [{**named, "partition_states": [state]}]
    for api, first_grouped in ((ApiKey.LEADER_AND_ISR, 2), (ApiKey.UPDATE_METADATA, 5)):
        for version in _versions(api):
            states: dict[str, object] = {"topic_states": grouped}
            if version < first_grouped:
                states = {"ungrouped_partition_states": [{**named, **state}]}
            yield Forged(build(api, **controller, **states), version, CLUSTER)
    for version in _versions(ApiKey.STOP_REPLICA):
        stopped: dict[str, object] = {
            "topic_states": [{**named, "partition_states": [{"partition_index": 0, "delete_partition": True}]}]
        }
        if version < 3:
            stopped = {"delete_partitions": True, "topics": [{"name": topics.shared, "partition_indexes": [0]}]}
        if version < 1:
            stopped = {"delete_partitions": True, "ungrouped_partitions": [{**named, "partition_index": 0}]}
        yield Forged(build(ApiKey.STOP_REPLICA, **controller, **stopped), version, CLUSTER)


def _of_brokers(topics: Topics, replica: int) -> Iterator[Forged]:
    for version in _versions(ApiKey.CONTROLLED_SHUTDOWN):
        yield Forged(build(ApiKey.CONTROLLED_SHUTDOWN, broker_id=replica), version, CLUSTER)
    for version in _versions(ApiKey.ALLOCATE_PRODUCER_IDS):
        yield Forged(build(ApiKey.ALLOCATE_PRODUCER_IDS, broker_id=replica, broker_epoch=1), version, CLUSTER)
    for version in _versions(ApiKey.ALTER_PARTITION):
        named = {"topic_name": topics.shared} if version < 2 else {"topic_id": topics.shared_id}
        isr = {"new_isr": [replica]} if version < 3 else {"new_isr_with_epochs": [{"broker_id": replica}]}
        proposed = [{**named, "partitions": [{"partition_index": 0, "leader_epoch": LARGE_EPOCH, **isr}]}]
        yield Forged(build(ApiKey.ALTER_PARTITION, broker_id=replica, topics=proposed), version, CLUSTER)
    marker = {**PRODUCER, "transaction_result": True, "topics": [{"name": topics.shared, "partition_indexes": [0]}]}
    for version in _versions(ApiKey.WRITE_TXN_MARKERS):
        yield Forged(build(ApiKey.WRITE_TXN_MARKERS, markers=[marker]), version, CLUSTER)
    added = [{"transactional_id": "others", **PRODUCER, "topics": [{"name": topics.shared, "partitions": [0]}]}]
    for version in (4, 5):  # the versions of brokers
        yield Forged(build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=added), version, CLUSTER)
