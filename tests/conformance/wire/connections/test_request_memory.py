"""`queued.max.request.bytes`: clients that announce more than there is hold each other up, and nobody else."""

from __future__ import annotations

import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker import Broker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build

NewBroker = Callable[..., Broker]
MIB = 1 << 20


def produce(size: int) -> bytes:
    """The frame of a Produce with one batch of about that size."""
    partition = {"index": 0, "records": batch(bytes(size))}
    data = [{"name": "t", "partition_data": [partition]}]
    request = build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)
    return encode_request(RequestHeader(ApiKey.PRODUCE, 8, 1, "c"), request)


def test_memory_that_is_announced_and_not_sent_holds_up_large_requests_only(new_broker: NewBroker) -> None:
    broker = new_broker(
        **{
            "socket.request.max.bytes": str(2 * MIB),
            "queued.max.request.bytes": str(4 * MIB),
        }
    )
    make_topic(broker, "t")
    large = produce(900_000)
    with RawClient(broker.host, broker.port) as served:
        silent = [RawClient(broker.host, broker.port) for _ in range(50)]
        for client in silent:
            client.send_bytes(struct.pack(">i", 2 * MIB) + bytes(10))
        with RawClient(broker.host, broker.port) as producer, ThreadPoolExecutor() as pool:
            sending = pool.submit(lambda: (producer.send_frame(large), producer.receive_frame()))
            for _ in range(20):
                served.call(MetadataRequest(topics=[]), 1)
            assert not sending.done()
            for client in silent:
                client.close()
            sending.result(timeout=10)


@pytest.mark.oracle
def test_many_large_requests_at_once_are_all_answered(new_broker: NewBroker) -> None:
    broker = new_broker(**{"socket.request.max.bytes": str(2 * MIB), "queued.max.request.bytes": str(3 * MIB)})
    make_topic(broker, "t")
    large = produce(900_000)
    with RawClient(broker.host, broker.port):
        process = psutil.Process(broker.pid)  # type: ignore[attr-defined]
        before = process.memory_info().rss

        def send(_: int) -> None:
            with RawClient(broker.host, broker.port, timeout_s=60) as client:
                for _ in range(3):
                    client.send_frame(large)
                for _ in range(3):
                    client.receive_frame()

        with ThreadPoolExecutor(30) as pool:
            list(pool.map(send, range(30)))
        if broker.target == "odradek":
            assert process.memory_info().rss - before < 40 * MIB, "90 requests are 80 MiB"
