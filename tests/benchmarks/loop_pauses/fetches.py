"""Fetches: in old formats, by many consumers that one append wakes, with more sessions than there is room for, and of
what is not in the page cache.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.loop_pauses.requests_naming import ask
from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.benchmarks.measure import usage_of
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

LARGE_BYTES = 33_000_000
BATCH_BYTES = 900_000
SMALL_BATCH_BYTES = 16_000
CONSUMERS = 500
SESSIONS = 1_100
SESSIONLESS = 2_000
COLD_FETCHES = 40
LONG_MS = 60_000


def run(watched: WatchedBroker, count: int) -> None:
    """Sizes do not depend on `count`: none of this takes long."""
    broker = watched.broker
    print_header("fetches")
    broker.start()
    for topic in ("large", "small", "woken", "many"):
        create_topic(broker, topic, 1)
    with RawClient(broker.host, broker.port) as client:
        fill(client, "large", LARGE_BYTES, BATCH_BYTES)
        fill(client, "small", LARGE_BYTES, SMALL_BATCH_BYTES)
        for version in (0, 2, 3):
            for topic, size in (("large", "0.9 MB"), ("small", "16 KB")):
                with watched.situation(f"Fetch v{version} of 33 MB in batches of {size}"):
                    ask(client, fetch(topic, 0, max_bytes=LARGE_BYTES + BATCH_BYTES), version)
    wake_consumers(watched)
    begin_sessions(watched)
    fetch_cold(watched)


def fill(client: RawClient, topic: str, total_bytes: int, batch_bytes: int) -> None:
    now_ms = int(time.time() * 1000)
    batch = bytes(build_batch([SimpleRecord(now_ms, None, bytes(1000))] * (batch_bytes // 1010)))
    for _ in range(total_bytes // len(batch)):
        produce(client, topic, batch)


def produce(client: RawClient, topic: str, batch: bytes) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=LONG_MS, topic_data=data), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer  # type: ignore[attr-defined]


def fetch(topic: str, offset: int, *, max_bytes: int = 1 << 20, wait_ms: int = 0, session_epoch: int = -1) -> Request:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    return build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=session_epoch,
        topics=[{"topic": topic, "partitions": [partition]}],
    )


def wake_consumers(watched: WatchedBroker) -> None:
    """Many consumers wait at the end of one partition, to which one record is appended."""
    broker = watched.broker
    with ExitStack() as stack:
        consumers = [stack.enter_context(RawClient(broker.host, broker.port)) for _ in range(CONSUMERS)]
        for consumer in consumers:
            consumer.send(fetch("woken", 0, wait_ms=LONG_MS), 11)
        client = stack.enter_context(RawClient(broker.host, broker.port))
        batch = bytes(build_batch([SimpleRecord(int(time.time() * 1000), None, b"value")]))
        with watched.situation(f"an append that wakes {CONSUMERS} consumers"):
            started = time.perf_counter()
            produce(client, "woken", batch)
            answered_ms = (time.perf_counter() - started) * 1000
            for consumer in consumers:
                consumer.receive_frame()
        print(f"    its producer waited {answered_ms:.1f} ms")


def begin_sessions(watched: WatchedBroker) -> None:
    """Fill the cache of sessions, so that no later request gets one."""
    broker = watched.broker
    with RawClient(broker.host, broker.port) as client:
        with watched.situation(f"{SESSIONS} fetch sessions are begun"):
            for _ in range(SESSIONS):
                ask(client, fetch("many", 0, session_epoch=0), 11)
        used = usage_of(broker.pid)
        with watched.situation(f"{SESSIONLESS} fetches that ask for one more"):
            for _ in range(SESSIONLESS):
                ask(client, fetch("many", 0, session_epoch=0), 11)
        spent_s = (usage_of(broker.pid) - used).total_s
        print(f"    {spent_s / SESSIONLESS * 1e6:.0f} µs of processor time each")


def fetch_cold(watched: WatchedBroker) -> None:
    """From places all over a log of which nothing is in the page cache."""
    broker = watched.broker
    with RawClient(broker.host, broker.port) as client:
        fill(client, "many", 10 * LARGE_BYTES, SMALL_BATCH_BYTES)
        records = 10 * LARGE_BYTES // 1010
        drop_from_page_cache(broker, "many-0")
        with watched.situation(f"{COLD_FETCHES} cold fetches"):
            for number in range(COLD_FETCHES):
                ask(client, fetch("many", number * 7919 * 31 % records), 11)


def drop_from_page_cache(broker: OdradekBroker, partition: str) -> None:
    for path in (broker.log_dir / partition).iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
