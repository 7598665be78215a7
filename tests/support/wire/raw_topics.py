"""Creates topics of one partition by raw requests, and reads their end offsets."""

from __future__ import annotations

from odradek.protocol.api import ApiKey
from tests.support.broker import Broker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

CREATE_TOPICS_VERSION = 5
LIST_OFFSETS_VERSION = 5
LATEST = -1


def make_topic(broker: Broker, topic: str) -> None:
    described = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    with RawClient(broker.host, broker.port) as client:
        client.call(build(ApiKey.CREATE_TOPICS, topics=[described], timeout_ms=10_000), CREATE_TOPICS_VERSION)


def end_offset(broker: Broker, topic: str) -> int:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}
    request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": [partition]}])
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(request, LIST_OFFSETS_VERSION)
    found: int = answer.topics[0].partitions[0].offset  # type: ignore[attr-defined]
    return found
