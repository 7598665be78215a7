"""A broker with few descriptors under a flood of connections: the broker goes on, and clients are served afterwards.

Apache loses its log directories here, which ends it; these tests are about Odradek.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.raw_topics import end_offset
from tests.support.wire.requests import batch, build

DESCRIPTORS = 300
FLOOD = 600
PARTITIONS = 40
FLOOD_S = 2.0
SETTINGS = {
    "socket.listen.backlog.size": "1024",
    # Everything that opens files, as often as it goes.
    "log.segment.bytes": "4096",
    "log.index.interval.bytes": "512",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.flush.scheduler.interval.ms": "100",
    "log.flush.interval.messages": "1",
    "offsets.topic.num.partitions": "1",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(tmp_path, SETTINGS)
    broker.prefix = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]
    broker.start()
    yield broker
    broker.close()


@contextlib.contextmanager
def flood(broker: OdradekBroker) -> Iterator[None]:
    """Connections that are held, as many as the kernel takes and the broker does not close."""
    held: list[socket.socket] = []
    try:
        for _ in range(FLOOD):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex((broker.host, broker.port))
            held.append(client)
        yield
    finally:
        for client in held:
            client.close()


def produce(client: RawClient, partition: int) -> int:
    data = [{"name": "t", "partition_data": [{"index": partition, "records": batch(b"x" * 500)}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5_000, topic_data=data), 9)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code


def test_flood_of_connections_leaves_the_broker_its_files(broker: OdradekBroker) -> None:
    with RawClient(broker.host, broker.port) as client:
        topic = {"name": "t", "num_partitions": PARTITIONS, "replication_factor": 1}
        client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5)
        produced = 0
        with flood(broker):
            eventually(lambda: "Cannot accept connections" in broker.log_text())
            deadline = time.monotonic() + FLOOD_S
            while time.monotonic() < deadline:
                for partition in range(PARTITIONS):
                    assert produce(client, partition) == ErrorCode.NONE
                produced += 1

    def is_served() -> bool:
        try:
            return end_offset(broker, "t") == produced
        except ConnectionClosedError:
            return False

    eventually(is_served)
    log = broker.log_text()
    assert "stopping serving logs" not in log
    assert "Traceback" not in log
    assert "has no descriptor for a file" not in log
    broker.stop()
