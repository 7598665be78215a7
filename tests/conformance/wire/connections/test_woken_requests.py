"""Waiting requests that are answered by one another, along a chain of connections."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

CONNECTIONS = 200
ANSWER_TIMEOUT_S = 60
CREATE_TOPICS_VERSION, METADATA_VERSION, PRODUCE_VERSION, FETCH_VERSION = 5, 5, 9, 11
FETCHED, PRODUCED = 1, 2


def frame(request: Request, version: int, correlation_id: int) -> bytes:
    payload = encode_request(RequestHeader(request.API_KEY, version, correlation_id, "raw"), request)
    return struct.pack(">i", len(payload)) + payload


def produce_to(topic: str, partition: int) -> bytes:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": batch(b"x")}]}]
    return frame(build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data), PRODUCE_VERSION, PRODUCED)


def fetch_from(topic: str, partition: int) -> bytes:
    wanted = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [wanted]}]
    request = build(ApiKey.FETCH, replica_id=-1, max_wait_ms=50_000, min_bytes=1, max_bytes=1 << 20, topics=topics)
    return frame(request, FETCH_VERSION, FETCHED)


def correlation_ids(client: socket.socket, count: int) -> list[int]:
    """Of the next answers."""
    stream = client.makefile("rb")
    found = []
    for _ in range(count):
        (size,) = struct.unpack(">i", stream.read(4))
        found.append(struct.unpack_from(">i", stream.read(size))[0])
    return found


def make_partitions(broker: Broker, topic: str, count: int) -> None:
    described = {"name": topic, "num_partitions": count, "replication_factor": 1}
    question = build(ApiKey.METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False)
    with RawClient(broker.host, broker.port) as client:
        client.call(build(ApiKey.CREATE_TOPICS, topics=[described], timeout_ms=30_000), CREATE_TOPICS_VERSION)

        def leaders() -> int:
            (found,) = client.call(question, METADATA_VERSION).topics  # type: ignore[attr-defined]
            return sum(partition.leader_id >= 0 for partition in found.partitions)

        eventually(leaders, accept=lambda led: led == count, timeout_s=ANSWER_TIMEOUT_S)


def test_a_chain_of_connections_whose_requests_wake_one_another(broker: Broker, unique: Callable[[str], str]) -> None:
    """Each connection waits for one partition, and has behind that the record for which the next connection waits."""
    topic = unique("chain")
    make_partitions(broker, topic, CONNECTIONS + 1)
    with ExitStack() as stack:
        clients = []
        for number in range(CONNECTIONS):
            client = stack.enter_context(socket.create_connection((broker.host, broker.port), ANSWER_TIMEOUT_S))
            client.sendall(fetch_from(topic, number) + produce_to(topic, number + 1))
            clients.append(client)
        first = stack.enter_context(socket.create_connection((broker.host, broker.port), ANSWER_TIMEOUT_S))
        first.sendall(produce_to(topic, 0))
        assert correlation_ids(first, 1) == [PRODUCED]
        for client in clients:
            assert correlation_ids(client, 2) == [FETCHED, PRODUCED]
