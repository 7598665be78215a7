"""Creates topics of one partition by raw requests, and reads their end offsets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from odradek.protocol.api import ApiKey
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

CREATE_TOPICS_VERSION = 5
LIST_OFFSETS_VERSION = 5
METADATA_VERSION = 5
LATEST = -1
STALL_OF_A_DISK_S = 120


def make_topic(broker: Broker, topic: str, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic of one partition, and wait until it has a leader.

    A broker closes a connection that is idle for `connections.max.idle.ms`, also while a request of it waits for the
    disk. Where that limit is a few seconds, a stall of the disk may therefore end the connection before the answer:
    what counts is the topic, and each look at it has a connection of its own.
    """
    entries = [{"name": name, "value": value} for name, value in (configs or {}).items()]
    described = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": entries}
    with RawClient(broker.host, broker.port) as client, suppress(ConnectionClosedError):
        client.call(build(ApiKey.CREATE_TOPICS, topics=[described], timeout_ms=10_000), CREATE_TOPICS_VERSION)
    eventually(lambda: _has_leader(broker, topic), timeout_s=STALL_OF_A_DISK_S)


def _has_leader(broker: Broker, topic: str) -> bool:
    request = build(ApiKey.METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False)
    with RawClient(broker.host, broker.port) as client:
        (described,) = client.call(request, METADATA_VERSION).topics  # type: ignore[attr-defined]
    return described.error_code == 0 and described.partitions[0].leader_id >= 0


def end_offset(broker: Broker, topic: str) -> int:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}
    request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": [partition]}])
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(request, LIST_OFFSETS_VERSION)
    found: int = answer.topics[0].partitions[0].offset  # type: ignore[attr-defined]
    return found
