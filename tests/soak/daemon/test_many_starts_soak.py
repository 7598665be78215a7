"""A thousand brokers one after the other in one process, and ten thousand topics used the moment they are created.

ODRADEK_SOAK_STARTS and ODRADEK_SOAK_FRESH_TOPICS shorten the runs.
"""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import threading
import time
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.support.in_process.in_process_broker import in_process_broker, no_bugs_logged
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.soak

STARTS = int(os.environ.get("ODRADEK_SOAK_STARTS", "1000"))
TOPICS = int(os.environ.get("ODRADEK_SOAK_FRESH_TOPICS", "10000"))
WARM_STARTS = 20
MEDIAN_START_MS = 150
DELETED_AT_A_TIME = 500


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_brokers_leave_nothing_in_the_process(tmp_path: Path) -> None:
    starts_ms, before = [], (0, 0)
    with no_bugs_logged():
        for number in range(STARTS + WARM_STARTS):
            directory = tmp_path / str(number)
            began = time.perf_counter()
            with in_process_broker(directory) as broker:
                broker.create_topic("t")
                starts_ms.append((time.perf_counter() - began) * 1000)
            shutil.rmtree(directory)
            if number == WARM_STARTS:
                gc.collect()
                before = threading.active_count(), descriptors()
    gc.collect()
    after = threading.active_count(), descriptors()
    median = statistics.median(starts_ms[WARM_STARTS:])
    print(
        f"{STARTS} starts, median {median:.0f} ms with a topic; threads and descriptors {before} before, {after} after"
    )
    assert after[0] <= before[0]
    assert after[1] <= before[1]
    assert median <= MEDIAN_START_MS


def test_a_topic_is_usable_when_it_is_created(tmp_path: Path) -> None:
    broker = OdradekBroker(tmp_path, {"log.segment.delete.delay.ms": "100"})
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        for first in range(0, TOPICS, DELETED_AT_A_TIME):
            names = [f"fresh-{number}" for number in range(first, min(first + DELETED_AT_A_TIME, TOPICS))]
            for name in names:
                use_at_once(client, name)
            deleted = client.call(build(ApiKey.DELETE_TOPICS, topic_names=names, timeout_ms=60_000), 5)
            assert {topic.error_code for topic in deleted.responses} == {0}  # type: ignore[attr-defined]
    broker.stop_cleanly()


def use_at_once(client: RawClient, name: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    created = client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=30_000), 5)
    assert created.topics[0].error_code == 0, created  # type: ignore[attr-defined]
    data = [{"name": name, "partition_data": [{"index": 0, "records": batch(name.encode())}]}]
    produced = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=5000, topic_data=data), 8)
    assert produced.responses[0].partition_responses[0].error_code == 0, produced  # type: ignore[attr-defined]
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10_000}
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=10_000,
        topics=[{"topic": name, "partitions": [wanted]}],
    )
    fetched = client.call(fetch, 11)
    (partition,) = fetched.responses[0].partitions  # type: ignore[attr-defined]
    assert partition.error_code == 0
    assert name.encode() in bytes(partition.records)
