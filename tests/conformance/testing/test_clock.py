"""What the broker does when its clock is advanced, as a client sees it. No test here waits for real time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.testing import Broker
from tests.support.tokens import USERS, create_token, describe_tokens, plain_client, settings_with_tokens
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

TOPIC = "orders"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(connections_max_idle_ms=-1) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with connect(broker) as connected:
        yield connected


def connect(broker: Broker, listener: str = "PLAINTEXT") -> RawClient:
    host, _, port = broker.addresses[listener].rpartition(":")
    return RawClient(host, int(port), client_id="shop")


def create_topic(client: RawClient, **configs: str) -> None:
    topic = {
        "name": TOPIC,
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()],
    }
    answer: Any = client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE


def produce(client: RawClient, records: bytes | bytearray, transactional_id: str | None = None) -> Any:
    partition = {"index": 0, "records": bytes(records)}
    topics = [{"name": TOPIC, "partition_data": [partition]}]
    request = build(ApiKey.PRODUCE, transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics)
    answer: Any = client.call(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return answer


def batch(broker: Broker, *values: str, key: str | None = None) -> bytearray:
    now_ms = broker.clock.time_ms()
    encoded_key = None if key is None else key.encode()
    return build_batch([SimpleRecord(timestamp=now_ms, key=encoded_key, value=value.encode()) for value in values])


def find_coordinator(client: RawClient, key: str, key_type: int) -> None:
    """The first request creates the internal topic; until it has a leader there is no coordinator."""
    for _ in range(1000):
        answer: Any = client.call(build(ApiKey.FIND_COORDINATOR, key=key, key_type=key_type), 2)
        if answer.error_code == ErrorCode.NONE:
            return
    raise AssertionError(answer)


def offset_at(client: RawClient, timestamp: int) -> int:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": TOPIC, "partitions": [partition]}])
    answer: Any = client.call(request, 5)
    found: int = answer.topics[0].partitions[0].offset
    return found


def values_of(client: RawClient) -> list[str]:
    values: list[str] = []
    offset = 0
    while found := fetch(client, offset):  # an answer has the records of one segment
        values += [bytes(record.value or b"").decode() for each in found for record in each.records()]
        offset = found[-1].last_offset + 1
    return values


def fetch(client: RawClient, offset: int) -> list[Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, "current_leader_epoch": -1}
    request = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[{"topic": TOPIC, "partitions": [partition]}],
        session_epoch=-1,
    )
    answer: Any = client.call(request, 11)
    return list(batches(memoryview(bytes(answer.responses[0].partitions[0].records or b""))))


def test_retention_deletes_records_that_are_old_now(broker: Broker, client: RawClient) -> None:
    create_topic(client, retention_ms="86400000")
    produce(client, batch(broker, "one", "two"))
    broker.clock.advance("23h")
    assert offset_at(client, -2) == 0
    broker.clock.advance("1h")
    assert offset_at(client, -2) == offset_at(client, -1) == 2


def test_a_member_without_heartbeats_is_removed_when_its_session_is_over(broker: Broker, client: RawClient) -> None:
    find_coordinator(client, "shop", 0)
    join: Any = None
    member_id = ""
    for _ in range(2):  # the first answer gives the member its id
        protocols = [{"name": "range", "metadata": b""}]
        request = build(
            ApiKey.JOIN_GROUP,
            group_id="shop",
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        join = client.call(request, 5)
        member_id = join.member_id
    heartbeat = build(ApiKey.HEARTBEAT, group_id="shop", generation_id=join.generation_id, member_id=member_id)
    assignment = [{"member_id": member_id, "assignment": b""}]
    sync = build(
        ApiKey.SYNC_GROUP,
        group_id="shop",
        generation_id=join.generation_id,
        member_id=member_id,
        assignments=assignment,
    )
    answer: Any = client.call(sync, 3)
    assert answer.error_code == ErrorCode.NONE
    broker.clock.advance("25m")
    answer = client.call(heartbeat, 3)
    assert answer.error_code == ErrorCode.NONE
    broker.clock.advance("31m")
    answer = client.call(heartbeat, 3)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_is_aborted_when_its_time_is_over(broker: Broker, client: RawClient) -> None:
    create_topic(client)
    find_coordinator(client, "pay", 1)
    init: Any = client.call(
        build(
            ApiKey.INIT_PRODUCER_ID,
            transactional_id="pay",
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        ),
        3,
    )
    assert init.error_code == ErrorCode.NONE
    producer = {"producer_id": init.producer_id, "producer_epoch": init.producer_epoch}
    topics = [{"name": TOPIC, "partitions": [0]}]
    add: Any = client.call(
        build(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            v3_and_below_transactional_id="pay",
            v3_and_below_producer_id=init.producer_id,
            v3_and_below_producer_epoch=init.producer_epoch,
            v3_and_below_topics=topics,
        ),
        3,
    )
    assert add.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == ErrorCode.NONE
    record = SimpleRecord(timestamp=broker.clock.time_ms(), key=None, value=b"open")
    produce(client, build_batch([record], base_sequence=0, is_transactional=True, **producer), "pay")
    describe = build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["pay"])
    answer: Any = client.call(describe, 0)
    assert answer.transaction_states[0].transaction_state == "Ongoing"
    broker.clock.advance("60s")
    answer = client.call(describe, 0)
    assert answer.transaction_states[0].transaction_state == "CompleteAbort"
    assert offset_at(client, -1) == 2, "the marker is in the partition"


def test_compaction_waits_for_the_lag_and_comes_with_it(broker: Broker, client: RawClient) -> None:
    create_topic(
        client,
        cleanup_policy="compact",
        min_compaction_lag_ms="3600000",
        segment_ms="60000",
        min_cleanable_dirty_ratio="0.0",
    )
    produce(client, batch(broker, "first", key="k"))
    produce(client, batch(broker, "second", key="k"))
    broker.clock.advance("2m")
    produce(client, batch(broker, "of another segment", key="other"))
    broker.clock.advance("30m")
    assert values_of(client) == ["first", "second", "of another segment"]
    broker.clock.advance("30m")
    assert values_of(client) == ["second", "of another segment"]


def test_an_idle_connection_is_closed() -> None:
    with Broker() as broker, connect(broker) as idle, connect(broker) as busy:
        idle.call(build(ApiKey.LIST_GROUPS), 1)
        broker.clock.advance("9m")
        busy.call(build(ApiKey.LIST_GROUPS), 1)
        broker.clock.advance("90s")
        with pytest.raises(ConnectionClosedError):
            idle.call(build(ApiKey.LIST_GROUPS), 1)
        busy.call(build(ApiKey.LIST_GROUPS), 1)


def test_a_throttled_client_is_served_again(broker: Broker, client: RawClient) -> None:
    create_topic(client)
    entity = [{"entity_type": "client-id", "entity_name": "shop"}]
    ops = [{"key": "producer_byte_rate", "value": 100.0, "remove": False}]
    client.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[{"entity": entity, "ops": ops}]), 1)
    answer = produce(client, batch(broker, "x" * 50_000))
    for _ in range(100):  # until the broker has read the quota
        if answer.throttle_time_ms:
            break
        answer = produce(client, batch(broker, "x" * 50_000))
    assert answer.throttle_time_ms >= 1000
    before_s = time.monotonic()
    list_groups = client.send(build(ApiKey.LIST_GROUPS), 1)
    broker.clock.advance("1h")
    client.receive(ApiKey.LIST_GROUPS, 1, list_groups)
    assert time.monotonic() - before_s < answer.throttle_time_ms / 1000


def test_a_delegation_token_expires() -> None:
    settings = settings_with_tokens(0, 0)
    with Broker({**settings, "delegation.token.expiry.time.ms": 86_400_000}) as broker:
        port = int(broker.addresses["SASL_PLAINTEXT"].rpartition(":")[2])
        with plain_client(port, USERS[0]) as client:
            token = create_token(client)
            assert token.error_code == ErrorCode.NONE
            assert len(describe_tokens(client).tokens) == 1
            broker.clock.advance("23h")
        with plain_client(port, USERS[0]) as client:
            assert len(describe_tokens(client).tokens) == 1
            broker.clock.advance("2h")
        with plain_client(port, USERS[0]) as client:
            assert describe_tokens(client).tokens == []
