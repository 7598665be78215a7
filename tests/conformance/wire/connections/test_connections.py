"""Limits on connections, and the effects of one client on the others, against the daemon."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import batch, build

NewBroker = Callable[..., Broker]


def metadata(client: RawClient) -> None:
    client.call(MetadataRequest(topics=None), 9)


def is_served(client: RawClient) -> bool:
    try:
        metadata(client)
    except ConnectionClosedError:
        return False
    return True


def test_address_with_too_many_connections_is_turned_away(new_broker: NewBroker) -> None:
    broker = new_broker(**{"max.connections.per.ip": "2"})

    def can_connect() -> bool:
        with RawClient(broker.host, broker.port) as another:
            return is_served(another)

    with RawClient(broker.host, broker.port) as first:
        assert is_served(first)
        with RawClient(broker.host, broker.port) as second:
            assert is_served(second)
            assert not can_connect()
            eventually(lambda: "already has the configured maximum of 2 connections" in broker.log_text())
        eventually(can_connect)


def test_full_broker_lets_the_next_client_wait(new_broker: NewBroker) -> None:
    broker = new_broker(**{"max.connections": "1"})
    request = encode_request(RequestHeader(ApiKey.METADATA, 0, 1, "c"), MetadataRequest(topics=[]))
    with RawClient(broker.host, broker.port) as first:
        assert is_served(first)
        waiting = socket.create_connection((broker.host, broker.port))  # accepted by the kernel only
        waiting.sendall(struct.pack(">i", len(request)) + request)
        waiting.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting.recv(4)
        assert is_served(first)
    with waiting:
        waiting.settimeout(10)
        assert len(waiting.recv(4)) == 4


def test_client_that_waits_is_let_in_when_the_limit_is_raised(new_broker: NewBroker) -> None:
    broker = new_broker(**{"max.connections": "1"})
    entry = {"name": "max.connections", "config_operation": 0, "value": "2"}
    resource = {"resource_type": 4, "resource_name": "0", "configs": [entry]}
    with RawClient(broker.host, broker.port) as first:
        assert is_served(first)
        with RawClient(broker.host, broker.port) as second:
            first.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1)
            assert is_served(second)
            assert is_served(first)


def test_idle_connection_is_closed_and_a_busy_one_is_not(new_broker: NewBroker) -> None:
    max_idle_s = 0.7
    broker = new_broker(**{"connections.max.idle.ms": str(round(max_idle_s * 1000))})
    with RawClient(broker.host, broker.port) as idle, ExitStack() as stack:
        metadata(idle)
        busy, asked = None, 0.0
        while not idle.is_closed():
            before, asked = asked, time.monotonic()
            if busy is None or not is_served(busy):
                # On a busy machine it may have asked nothing for so long.
                assert time.monotonic() - before > max_idle_s, "a client that asks is closed"
                busy = stack.enter_context(RawClient(broker.host, broker.port))
            time.sleep(0.1)
        assert busy is not None


def test_ten_thousand_requests_on_their_way_are_answered_in_order(new_broker: NewBroker) -> None:
    broker = new_broker()
    with RawClient(broker.host, broker.port) as client:
        metadata(client)
        before = psutil.Process(broker.pid).memory_info().rss  # type: ignore[attr-defined]
        request = MetadataRequest(topics=[])
        count = 10_000
        for _ in range(100):
            for _ in range(100):
                client.send(request, 1)
        for number in range(count):
            client.receive(ApiKey.METADATA, 1, number + 2)
        assert psutil.Process(broker.pid).memory_info().rss - before < 32 << 20  # type: ignore[attr-defined]


def test_clients_that_never_read_their_fetch_cost_no_memory(new_broker: NewBroker) -> None:
    broker = new_broker()
    with RawClient(broker.host, broker.port) as client:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5)
        partition = {"index": 0, "records": batch(bytes(900_000))}
        produce = build(
            ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=[{"name": "t", "partition_data": [partition]}]
        )
        for _ in range(60):
            client.call(produce, 8)
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 50 << 20}
        fetch = build(
            ApiKey.FETCH,
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=50 << 20,
            topics=[{"topic": "t", "partitions": [wanted]}],
        )
        process = psutil.Process(broker.pid)  # type: ignore[attr-defined]
        before, open_before = process.memory_info().rss, process.num_fds()
        readers = [RawClient(broker.host, broker.port) for _ in range(50)]
        for reader in readers:
            for _ in range(5):
                reader.send(fetch, 11)
        for _ in range(50):
            metadata(client)  # nobody else waits for them
        assert process.memory_info().rss - before < 64 << 20
        for reader in readers:
            reader.close()
        eventually(process.num_fds, accept=lambda count: count <= open_before)
        assert is_served(client)


def test_connections_that_are_reset_in_the_middle_of_a_frame_leave_nothing(new_broker: NewBroker) -> None:
    broker = new_broker()
    with RawClient(broker.host, broker.port) as client:
        metadata(client)
        process = psutil.Process(broker.pid)  # type: ignore[attr-defined]
        before = process.num_fds()
        for _ in range(200):
            with socket.create_connection((broker.host, broker.port)) as rude:
                rude.sendall(struct.pack(">i", 1000) + b"half")
                rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(process.num_fds, accept=lambda count: count <= before)
        assert is_served(client)
    assert "Traceback" not in broker.log_text()
