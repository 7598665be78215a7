"""Clients far ahead of their quota: what they leave behind when they go, and a stop while they are muted."""

from __future__ import annotations

from collections.abc import Callable

import psutil

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

NewBroker = Callable[..., Broker]


def sockets(process: psutil.Process) -> int:
    """The sockets of clients that the broker has, closed by them or not."""
    return sum(bool(connection.raddr) for connection in process.net_connections())


def test_clients_that_are_muted_for_minutes_leave_nothing_behind_and_hold_up_no_stop(new_broker: NewBroker) -> None:
    broker = new_broker()
    process = psutil.Process(broker.pid)  # type: ignore[attr-defined]
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(bytes(900_000))}]}]
    produce = build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)
    with RawClient(broker.host, broker.port) as admin:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        admin.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5)
        ops = [{"key": "producer_byte_rate", "value": 1000.0}]
        entry = {"entity": [{"entity_type": "client-id", "entity_name": None}], "ops": ops}
        admin.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]), 1)

        def throttle_time_ms() -> int:
            with RawClient(broker.host, broker.port, "probe") as client:
                return client.call(produce, 8).throttle_time_ms  # type: ignore[attr-defined, no-any-return]

        eventually(lambda: throttle_time_ms() > 0)
        clients = [RawClient(broker.host, broker.port, f"c{number}") for number in range(30)]
        for client in clients:
            assert client.call(produce, 8).throttle_time_ms > 600_000  # type: ignore[attr-defined]
        for client in clients[:10]:
            client.close()
        for client in clients[10:20]:
            client.reset()
        eventually(lambda: sockets(process) == 11)
        admin.call(MetadataRequest(topics=[]), 1)
        broker.stop()  # which has a limit of its own, far below the throttle
    for client in clients:
        client.close()
