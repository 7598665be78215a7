"""A plaintext fetch leaves through os.sendfile: the records never enter the Python process."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import decode
from odradek.protocol.headers import decode_response_header
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.records.batch import batches
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.counting_daemon import MARK
from tests.support.processes.odradek_process import ADDRESS, START_TIMEOUT_S, STARTED
from tests.support.processes.process import ManagedProcess
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

RECORD_BYTES = 100_000
RECORDS = 80
NEGLIGIBLE = 0.01


class CountingBroker:
    def __init__(self, directory: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.support.processes.counting_daemon", "serve", "--port", "0"]
        command += ["--data", str(directory / "data"), *arguments]
        environment = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
        self.process = ManagedProcess(command, directory / "broker.log", cwd=directory, env=environment)
        self.process.start()
        self.process.wait_for_line(STARTED, START_TIMEOUT_S)
        self.port = int(self.process.wait_for_line(ADDRESS, START_TIMEOUT_S)[1])
        self._reports = 0

    def counts(self) -> dict[str, int]:
        """Bytes moved since the last call."""
        os.kill(self.process.pid, signal.SIGUSR1)
        self._reports += 1
        match = self.process.wait_for_line(rf"(?s)(?:{MARK}[^\n]*\n.*?){{{self._reports - 1}}}{MARK}([^\n]*)\n", 10)
        counts: dict[str, int] = json.loads(match[1])
        return counts


@pytest.fixture(params=["uvloop", "asyncio"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CountingBroker]:
    counting = CountingBroker(tmp_path, "--event-loop", request.param)
    yield counting
    assert counting.process.terminate() == 0


def produce(client: RawClient, topic: str) -> None:
    client.call(
        build(
            ApiKey.CREATE_TOPICS,
            topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}],
            timeout_ms=10_000,
        ),
        5,
    )
    for number in range(RECORDS):
        partition = {"index": 0, "records": batch(bytes([number]) * RECORD_BYTES)}
        response = client.call(
            build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=[{"name": topic, "partition_data": [partition]}]),
            8,
        )
        assert response.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]


def fetch(client: RawClient, topic: str, max_bytes: int) -> bytes:
    """The records of one Fetch from the start."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": max_bytes}
    request = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    client.send(request, 11)
    payload = client.receive_frame()
    _, position = decode_response_header(ApiKey.FETCH, 11, payload)
    response = decode(FetchResponse, memoryview(payload), 11, None, position)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    return bytes(records)


def test_large_fetch_never_enters_the_process(broker: CountingBroker, unique: Callable[[str], str]) -> None:
    topic = unique("sendfile")
    with RawClient("127.0.0.1", broker.port) as client:
        produce(client, topic)
        broker.counts()
        fetched = fetch(client, topic, 2 * RECORDS * RECORD_BYTES)
        found = [record.value for view in batches(memoryview(fetched)) for record in view.records()]
        assert found == [bytes([number]) * RECORD_BYTES for number in range(RECORDS)]
        client.call(MetadataRequest(topics=[]), 9)  # the last of the answer is counted after it has arrived
        counts = broker.counts()
    assert counts["sendfile"] == len(fetched)
    assert counts.get("python", 0) < NEGLIGIBLE * len(fetched)  # batch headers, and samples of the page cache
    assert "opened as a Python file" not in counts


def test_small_fetch_is_copied(broker: CountingBroker, unique: Callable[[str], str]) -> None:
    topic = unique("copied")
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(
            build(
                ApiKey.CREATE_TOPICS,
                topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}],
                timeout_ms=10_000,
            ),
            5,
        )
        partition = {"index": 0, "records": batch(b"small")}
        client.call(
            build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=[{"name": topic, "partition_data": [partition]}]),
            8,
        )
        broker.counts()
        assert fetch(client, topic, 1 << 20)
        assert "sendfile" not in broker.counts()
