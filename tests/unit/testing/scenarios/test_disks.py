from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import AsyncBroker, Broker
from odradek.testing.scenarios import disk_full, slow_disk
from tests.support.async_test import async_test
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

SLOW_S = 1


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as served:
        yield served


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[RawClient]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with RawClient(host, int(port)) as connected:
        create(connected, "t", {"flush.messages": "1"})
        yield connected


def create(client: RawClient, name: str, configs: dict[str, str]) -> int:
    given = [{"name": key, "value": value} for key, value in configs.items()]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1, "configs": given}]
    answer = client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=10_000), 5)
    return int(answer.topics[0].error_code)  # type: ignore[attr-defined]


def produce(client: RawClient, value: bytes) -> int:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(value)}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data), 9)
    return int(answer.responses[0].partition_responses[0].error_code)  # type: ignore[attr-defined]


def test_a_full_disk_refuses_records_and_takes_them_when_it_has_room(broker: Broker, client: RawClient) -> None:
    before = len(broker.topic("t").records())
    with disk_full(broker):
        assert produce(client, b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    broker.clock.advance("1s")  # a broker looks for room every second
    assert produce(client, b"taken") == ErrorCode.NONE
    assert broker.topic("t").values()[before:] == [b"taken"]


def test_records_wait_for_a_slow_disk_and_others_do_not(broker: Broker, client: RawClient) -> None:
    with slow_disk(broker, f"{SLOW_S}s"):
        started = time.monotonic()
        assert produce(client, b"slow") == ErrorCode.NONE
        assert time.monotonic() - started >= SLOW_S
    assert broker.ask("disk_state") == (False, 0), "the disk is quick again"
    assert produce(client, b"quick") == ErrorCode.NONE


def test_what_a_full_disk_has_refused_is_refused_again_by_a_replay(broker: Broker, client: RawClient) -> None:
    assert produce(client, b"before") == ErrorCode.NONE
    with disk_full(broker) as scenario:
        assert produce(client, b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    broker.clock.advance("1s")
    record = scenario.record()
    assert [(event.api, event.call, event.rule) for event in record.events] == [("Produce", 1, "disk_full")]
    broker.faults.replay(record)
    assert [produce(client, b"again") for _ in range(2)] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    broker.faults.assert_replayed()
    broker.faults.clear()


@async_test
async def test_a_record_for_coroutines(broker: Broker, client: RawClient) -> None:
    async with slow_disk(AsyncBroker.of(broker), "100ms") as scenario:
        assert await asyncio.to_thread(produce, client, b"slow") == ErrorCode.NONE
    [event] = (await scenario.record_async()).events
    assert (event.api, event.fault["action"]) == ("Produce", "delay")
