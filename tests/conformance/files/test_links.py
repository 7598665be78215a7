"""Links between brokers over real sockets, to Odradek and to Apache Kafka alike."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.inter_broker.broker_connection import BrokerConnection
from odradek.broker.inter_broker.socket_links import SocketLinks
from odradek.broker.machine.ticker import Ticker
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.timer.clock import SystemClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test
from tests.support.broker import Broker
from tests.support.disks.logs import batch
from tests.support.processes.ports import LOOPBACK, free_port

ANSWER_MS = 10_000


@contextmanager
def link_to(host: str, port: int) -> Iterator[BrokerConnection]:
    clock = SystemClock()
    timer = SystemTimer(clock)
    ticker = Ticker(asyncio.get_running_loop(), clock, timer)
    ticker.start()
    links = SocketLinks(BrokerConfig({}), timer)
    link = links(EndPoint(host, port, "PLAINTEXT", SecurityProtocol.PLAINTEXT), client_id="7")
    try:
        yield link
    finally:
        link.close()
        ticker.stop()


def test_versions_are_agreed_upon_with_a_real_broker(broker: Broker) -> None:
    @async_test
    async def run() -> None:
        with link_to(broker.host, broker.port) as link:
            for version in (None, 0, None):
                request = DescribeClusterRequest()
                answer = await link.exchange(request, DescribeClusterResponse, version=version, timeout_ms=ANSWER_MS)
                assert [node.port for node in answer.brokers] == [broker.port]

    run()


def test_large_answers_come_whole(broker: Broker) -> None:
    @async_test
    async def run() -> None:
        records = bytes(batch(b"x" * 900_000))
        with link_to(broker.host, broker.port) as link:
            create = CreateTopicsRequest(
                topics=[CreatableTopic(name="links-large", num_partitions=1, replication_factor=1)],
                timeout_ms=ANSWER_MS,
            )
            await link.exchange(create, CreateTopicsResponse, version=5, timeout_ms=ANSWER_MS)
            for _ in range(5):
                data = TopicProduceData(
                    name="links-large", partition_data=[PartitionProduceData(index=0, records=records)]
                )
                produce = ProduceRequest(acks=-1, timeout_ms=ANSWER_MS, topic_data=[data])
                produced = await link.exchange(produce, ProduceResponse, version=8, timeout_ms=ANSWER_MS)
                assert produced.responses[0].partition_responses[0].error_code == 0
            partition = FetchPartition(partition=0, partition_max_bytes=10_000_000)
            fetch = FetchRequest(
                max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="links-large", partitions=[partition])]
            )
            for _ in range(3):
                fetched = await link.exchange(fetch, FetchResponse, version=12, timeout_ms=ANSWER_MS)
                found = fetched.responses[0].partitions[0].records
                assert isinstance(found, memoryview)
                assert len(found) == 5 * len(records)
                assert found[-900_000:-1_000] == records[-900_000:-1_000]

    run()


@async_test
async def test_a_broker_that_does_not_answer_and_one_that_is_not_there_are_errors_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with link_to(host, port) as link, pytest.raises(TimeoutError):
            await link.exchange(DescribeClusterRequest(), DescribeClusterResponse, version=0, timeout_ms=200)
    with link_to(LOOPBACK, free_port()) as link:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                await link.exchange(DescribeClusterRequest(), DescribeClusterResponse, version=0, timeout_ms=5_000)


@async_test
async def test_a_broker_that_hangs_up_is_connected_to_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        writer.write(b"\0\0\0\x18" + request[4:8] + bytes(20))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    with link_to(host, port) as link:
        for number in (1, 2):
            request = AllocateProducerIdsRequest()
            await link.exchange(request, AllocateProducerIdsResponse, version=0, timeout_ms=5_000)
            assert connections == number
            await asyncio.sleep(0.05)
    server.close()
