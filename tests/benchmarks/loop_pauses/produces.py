"""Produces whose records the broker must decode or compress anew, and another producer meanwhile."""

from __future__ import annotations

import statistics
import threading
import time

from odradek.protocol.api import ApiKey
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.convert import convert_to_magic
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.loop_pauses.fetches import LONG_MS, produce
from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

BATCHES = 20
RECORDS = 9_000
VALUE_BYTES = 95
"""Together 1 MB."""


def run(watched: WatchedBroker, count: int) -> None:
    """Sizes do not depend on `count`: none of this takes long."""
    broker = watched.broker
    print_header("produces")
    broker.start()
    create_topic(broker, "other", 1)
    now_ms = int(time.time() * 1000)
    records = [SimpleRecord(now_ms, b"k", value(index)) for index in range(RECORDS)]
    plain = bytes(build_batch(records))
    opened = bytes(build_batch(records, compression_type=CompressionType.ZSTD))
    old = convert_to_magic(RecordBatch(memoryview(plain)), 1).records
    for name, configs, batch, version in (
        ("1 MB, stored with gzip", {"compression.type": "gzip"}, plain, 9),
        ("1 MB, stored with zstd", {"compression.type": "zstd"}, plain, 9),
        ("1 MB from zstd, stored uncompressed", {"compression.type": "uncompressed"}, opened, 9),
        ("1 MB from zstd, walked over for a compacted topic", {"cleanup.policy": "compact"}, opened, 9),
        ("1 MB of single messages of format v1", {}, old, 2),
    ):
        topic = name.replace(" ", "_").replace(",", "")
        create_topic(broker, topic, 1, configs)
        _beside_another(watched, name, topic, batch, version)


def value(index: int) -> bytes:
    """Text that a codec halves or better, as JSON is."""
    return (b'{"id": %d, "name": "name %d", "score": %d, "text": "' % (index, index * 7919, index % 97)).ljust(
        VALUE_BYTES, b"abcdefgh"[index % 8 : index % 8 + 1]
    )


def _beside_another(watched: WatchedBroker, name: str, topic: str, batch: bytes, version: int) -> None:
    """Send the batches one after the other; the other producer sends single records as fast as it can."""
    broker = watched.broker
    is_over = threading.Event()
    waited_ms: list[float] = []

    def produce_others() -> None:
        small = bytes(build_batch([SimpleRecord(int(time.time() * 1000), None, b"value")]))
        with RawClient(broker.host, broker.port) as client:
            while not is_over.is_set():
                started = time.perf_counter()
                produce(client, "other", small)
                waited_ms.append((time.perf_counter() - started) * 1000)

    with RawClient(broker.host, broker.port) as client:
        send(client, topic, batch, version)  # a worker process is started, if one is needed
        other = threading.Thread(target=produce_others)
        with watched.situation(f"{BATCHES} batches of {name}"):
            other.start()
            started = time.perf_counter()
            for _ in range(BATCHES):
                send(client, topic, batch, version)
            each_ms = (time.perf_counter() - started) * 1000 / BATCHES
            is_over.set()
            other.join()
    p99_ms = statistics.quantiles(waited_ms, n=100)[98]
    print(
        f"    each took {each_ms:.0f} ms; {len(waited_ms)} other produces waited {statistics.median(waited_ms):.2f} ms "
        f"(median), {p99_ms:.2f} ms (p99), {max(waited_ms):.1f} ms (longest)",
        flush=True,
    )


def send(client: RawClient, topic: str, batch: bytes, version: int) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=LONG_MS, topic_data=data), version)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer  # type: ignore[attr-defined]
