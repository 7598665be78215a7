"""Records that the broker compresses anew: the order of a connection's requests, also where they take long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from odradek.broker.apis.services import SMALL_REQUEST_BYTES
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from tests.support.broker import Broker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import end_offset
from tests.support.wire.requests import build

PRODUCE_VERSION, FETCH_VERSION, CREATE_TOPICS_VERSION = 9, 11, 5
LONG_RECORDS, SHORT_RECORDS = 3_000, 2
PAIRS = 6


def make_topic(broker: Broker, topic: str, configs: Mapping[str, str]) -> None:
    settings = [{"name": name, "value": value} for name, value in configs.items()]
    described = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.CREATE_TOPICS, topics=[described], timeout_ms=10_000), CREATE_TOPICS_VERSION)
        assert answer.topics[0].error_code == 0  # type: ignore[attr-defined]


def records(count: int, *, compression: int = CompressionType.NONE, first: int = 0, **producer: int) -> bytes:
    now_ms = int(time.time() * 1000)
    simple = [SimpleRecord(now_ms, b"k", b"value number %d" % (first + number)) for number in range(count)]
    return bytes(build_batch(simple, compression_type=compression, **producer))  # type: ignore[arg-type]


def produce(topic: str, batch: bytes, acks: int = -1) -> Request:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    return build(ApiKey.PRODUCE, acks=acks, timeout_ms=10_000, topic_data=data)


def error_and_offset(answer: object) -> tuple[int, int]:
    partition = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    return partition.error_code, partition.base_offset


def stored_batches(broker: Broker, topic: str) -> list[tuple[int, int, list[bytes | None]]]:
    """Base offset, codec and values of each batch."""
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 25}
    topics = [{"topic": topic, "partitions": [wanted]}]
    request = build(ApiKey.FETCH, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 25, topics=topics)
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(request, FETCH_VERSION)
    data = answer.responses[0].partitions[0].records  # type: ignore[attr-defined]
    return [
        (batch.base_offset, batch.compression_type, [record.value for record in batch.records()])
        for batch in batches(memoryview(data))
    ]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(tmp_path)
    broker.start()
    yield broker
    broker.close()


@pytest.mark.oracle
def test_pipelined_requests_are_applied_in_order(broker: Broker) -> None:
    make_topic(broker, "pipelined", {"compression.type": "gzip"})
    with RawClient(broker.host, broker.port) as client:
        sent: list[tuple[int, int]] = []
        expected: list[tuple[int, int]] = []
        sequence = 0
        for _ in range(PAIRS):
            for count in (LONG_RECORDS, SHORT_RECORDS):
                batch = records(count, first=sequence, producer_id=77_000, producer_epoch=0, base_sequence=sequence)
                sent.append((client.send(produce("pipelined", batch), PRODUCE_VERSION), sequence))
                expected.append((0, sequence))
                sequence += count
        answers = [
            error_and_offset(client.receive(ApiKey.PRODUCE, PRODUCE_VERSION, correlation_id))
            for correlation_id, _ in sent
        ]
    assert answers == expected
    found = stored_batches(broker, "pipelined")
    assert {codec for _, codec, _ in found} == {CompressionType.GZIP}
    values = [value for _, _, batch in found for value in batch]
    assert values == [b"value number %d" % number for number in range(sequence)]


@pytest.mark.oracle
def test_records_without_acknowledgement_before_the_end_of_a_connection(broker: Broker) -> None:
    make_topic(broker, "unacknowledged", {"compression.type": "zstd"})
    with RawClient(broker.host, broker.port) as client:
        for number in range(PAIRS):
            batch = records(LONG_RECORDS, first=number * LONG_RECORDS)
            client.send(produce("unacknowledged", batch, acks=0), PRODUCE_VERSION)
    assert eventually(lambda: end_offset(broker, "unacknowledged"), accept=lambda end: end == PAIRS * LONG_RECORDS)
    values = [value for _, _, batch in stored_batches(broker, "unacknowledged") for value in batch]
    assert values == [b"value number %d" % number for number in range(PAIRS * LONG_RECORDS)]


@pytest.mark.oracle
def test_small_request_with_many_records(broker: Broker) -> None:
    make_topic(broker, "small", {"compression.type": "gzip"})
    now_ms = int(time.time() * 1000)
    batch = bytes(build_batch([SimpleRecord(now_ms, None, None)] * 1_500, compression_type=CompressionType.ZSTD))
    assert len(batch) < SMALL_REQUEST_BYTES - 100
    with RawClient(broker.host, broker.port) as client:
        assert error_and_offset(client.call(produce("small", batch), PRODUCE_VERSION)) == (0, 0)
        assert error_and_offset(client.call(produce("small", batch), PRODUCE_VERSION)) == (0, 1_500)


def worker_ids(broker: OdradekBroker) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(broker.pid)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def kill_workers(broker: OdradekBroker) -> int:
    """Kill the worker processes and wait until they have ended; return how many were killed.

    A process that ends only when the broker gives it the next job would fail a job that the next kill fails, too; a
    job is started twice. A listed process can be one killed before: the broker collects it with its next job.
    """
    killed = [pid for pid in worker_ids(broker) if not has_ended(pid)]
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in killed:
        eventually(lambda pid=pid: has_ended(pid))
    return len(killed)


def has_ended(pid: int) -> bool:
    """The process and all its threads have ended, so that its parent can see it; perhaps the parent has not looked.

    The first thread of a killed process may be a zombie, and the process with it, while others still run.
    """
    try:
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_ZOMBIE and len(os.listdir(f"/proc/{pid}/task")) == 1
    except (psutil.NoSuchProcess, FileNotFoundError):
        return True


def test_killed_workers_lose_nothing_and_refuse_nothing(own: OdradekBroker) -> None:
    make_topic(own, "killed", {"compression.type": "gzip"})
    killed = 0
    with RawClient(own.host, own.port) as client:
        client.call(produce("killed", records(LONG_RECORDS)), PRODUCE_VERSION)
        for number in range(1, 4):
            client.send(produce("killed", records(LONG_RECORDS)), PRODUCE_VERSION)
            killed += eventually(lambda: kill_workers(own), accept=bool)
            answer = client.receive(ApiKey.PRODUCE, PRODUCE_VERSION)
            assert error_and_offset(answer) == (0, number * LONG_RECORDS)
    assert killed >= 3
    own.stop_cleanly()


def test_stop_while_records_are_recompressed(own: OdradekBroker) -> None:
    make_topic(own, "stopped", {"compression.type": "gzip", "compression.gzip.level": "9"})
    clients = [RawClient(own.host, own.port) for _ in range(8)]
    for client in clients:
        for _ in range(3):
            client.send(produce("stopped", records(LONG_RECORDS)), PRODUCE_VERSION)
    assert eventually(lambda: worker_ids(own), accept=bool)
    own.stop_cleanly()
    for client in clients:
        client.close()
    own.start()
    end = end_offset(own, "stopped")
    assert end % LONG_RECORDS == 0
    assert sum(len(values) for _, _, values in stored_batches(own, "stopped")) == end
    own.stop_cleanly()
