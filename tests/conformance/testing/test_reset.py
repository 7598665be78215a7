"""What a reset takes away: everything of the broker except its port, and how long that takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import Broker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "connections.max.idle.ms": "-1",
}
RESET_MS = 10
BUSY_MACHINE = 10
"""So many times longer may a processor need that other work shares."""


def connect(broker: Broker) -> RawClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return RawClient(host, int(port))


def answered(client: RawClient, api_key: ApiKey, version: int, /, **fields: object) -> Any:
    return client.call(build(api_key, **fields), version)


def use(broker: Broker, client: RawClient) -> None:
    """Leave something of each kind in the broker."""
    topic = {"name": "orders", "num_partitions": 3, "replication_factor": 1}
    answered(client, ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=10_000)
    for key, key_type in (("billing", 0), ("pay", 1)):
        while answered(client, ApiKey.FIND_COORDINATOR, 2, key=key, key_type=key_type).error_code:
            pass
    offset = {"partition_index": 0, "committed_offset": 0}
    committed = {"name": "orders", "partitions": [offset]}
    answered(client, ApiKey.OFFSET_COMMIT, 7, group_id="billing", generation_id_or_member_epoch=-1, topics=[committed])
    answered(
        client,
        ApiKey.INIT_PRODUCER_ID,
        3,
        transactional_id="pay",
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    config = {"name": "log.cleaner.threads", "config_operation": 0, "value": "2"}
    resource = {"resource_type": 4, "resource_name": "0", "configs": [config]}
    answered(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    entity = [{"entity_type": "client-id", "entity_name": "shop"}]
    ops = [{"key": "producer_byte_rate", "value": 100.0, "remove": False}]
    answered(client, ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[{"entity": entity, "ops": ops}])
    acl = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:eve",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    answered(client, ApiKey.CREATE_ACLS, 3, creations=[acl])
    broker.faults.not_leader("orders", times=1)
    broker.clock.advance("1d")


def what_is_there(broker: Broker, client: RawClient) -> dict[str, object]:
    any_acl = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    threads = {"resource_type": 4, "resource_name": "0", "configuration_keys": ["log.cleaner.threads"]}
    described = answered(client, ApiKey.DESCRIBE_CONFIGS, 4, resources=[threads])
    quotas = answered(client, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False)
    return {
        "topics": broker.topics(internal=True),
        "groups": broker.groups(),
        "transactions": broker.transactions(),
        "configs": described.results[0].configs[0].value,
        "quotas": len(quotas.entries),
        "acls": len(answered(client, ApiKey.DESCRIBE_ACLS, 3, **any_acl).resources),
        "faults": broker.faults.rules(),
        "clock": broker.clock.time_ms() // 3_600_000 == time.time_ns() // 3_600_000_000_000,
    }


def test_all_is_gone_but_the_port() -> None:
    with Broker(SETTINGS) as broker:
        port = broker.bootstrap_servers
        with connect(broker) as client:
            fresh = what_is_there(broker, client)
            use(broker, client)
            used = what_is_there(broker, client)
            assert [kind for kind in fresh if used[kind] == fresh[kind]] == []
            broker.reset()
            assert broker.requests() == []
            with pytest.raises(ConnectionClosedError):
                client.call(build(ApiKey.LIST_GROUPS), 1)
        assert broker.bootstrap_servers == port
        with connect(broker) as client:
            assert what_is_there(broker, client) == fresh


def reset_times_ms(count: int, now_s: Callable[[], float]) -> list[float]:
    """Resets of a broker that was used, with a connected client."""
    times_ms = []
    with Broker() as broker:
        for number in range(count):
            with connect(broker) as client:
                topic = {"name": f"orders-{number}", "num_partitions": 3, "replication_factor": 1}
                created = answered(client, ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=10_000)
                assert created.topics[0].error_code == ErrorCode.NONE
                before_s = now_s()
                broker.reset()
                times_ms.append((now_s() - before_s) * 1000)
    return times_ms


def test_a_reset_takes_milliseconds_of_processor_time() -> None:
    assert statistics.median(reset_times_ms(10, time.process_time)) < RESET_MS * BUSY_MACHINE


@pytest.mark.soak
def test_two_hundred_resets() -> None:
    median_ms = statistics.median(reset_times_ms(200, time.perf_counter))
    print(f"median of 200 resets: {median_ms:.1f} ms")
    assert median_ms < RESET_MS
