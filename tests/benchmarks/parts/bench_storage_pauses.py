"""How late the event loop is while one broker compacts 2 GB under load and another one beside it recovers 2 GB.

    python -m tests.benchmarks.parts.bench_storage_pauses

Both brokers watch their loops themselves (`odradek.event.loop.pause.ms`); their summary at the stop is printed, and
each pause beyond the limit with its cause. The load is a producer and a consumer on a topic of their own.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from odradek.protocol.api import ApiKey
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import create_topic
from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

TOTAL_BYTES = 2_000_000_000
RECORDS_A_BATCH = 16
VALUE_BYTES = 1000
KEYS = 200_000
PAUSE_MS = 50
COMPACTED_WITHIN_S = 120
SETTINGS = {
    "odradek.event.loop.pause.ms": str(PAUSE_MS),
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "134217728",
}
HELD_UP = re.compile(r"The event loop was held up .*")
SUMMARY = re.compile(r"Event loop: (.*?) \(")
CLEANED = "Cleaned log topic-0"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as path:
        recovering, compacting = (OdradekBroker(Path(path) / name, SETTINGS) for name in ("recovering", "compacting"))
        try:
            recovering.start()
            fill(recovering)
            recovering.stop()
            shutil.copytree(recovering.log_dir, compacting.log_dir, dirs_exist_ok=True)
            for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
                (recovering.log_dir / name).unlink()
            compacting.start()
            measure(compacting, recovering)
            for broker, name in ((compacting, "compacting 2 GB under load"), (recovering, "recovering 2 GB")):
                broker.stop()
                report(name, broker.log_text())
        finally:
            recovering.close()
            compacting.close()


def fill(broker: OdradekBroker) -> None:
    """2 GB of keyed records, in batches of 16 KB."""
    create_topic(broker, "topic", 1)
    rng = random.Random(7)
    values = [rng.randbytes(VALUE_BYTES) for _ in range(64)]
    with RawClient(broker.host, broker.port) as client:
        written = 0
        while written < TOTAL_BYTES:
            now_ms = int(time.time() * 1000)
            keys = [b"key-%012d" % rng.randrange(KEYS) for _ in range(RECORDS_A_BATCH)]
            batch = build_batch([SimpleRecord(now_ms, key, rng.choice(values)) for key in keys])
            produce(client, "topic", batch)
            written += len(batch)


def produce(client: RawClient, topic: str, batch: bytes) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=data), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer  # type: ignore[attr-defined]


def measure(compacting: OdradekBroker, recovering: OdradekBroker) -> None:
    """Start the compaction, and the recovery beside it; returns when both are done."""
    stop = threading.Event()
    create_topic(compacting, "load", 1)
    loads = [threading.Thread(target=load, args=(compacting, stop)) for load in (keep_producing, keep_consuming)]
    for thread in loads:
        thread.start()
    started = time.perf_counter()
    compact(compacting)
    recovering.start()
    print(f"recovered and started after {time.perf_counter() - started:.1f} s")
    while CLEANED not in compacting.log_text():
        assert time.perf_counter() - started < COMPACTED_WITHIN_S, "the topic was not compacted"
        time.sleep(0.2)
    print(f"compacted after {time.perf_counter() - started:.1f} s")
    stop.set()
    for thread in loads:
        thread.join()


def compact(broker: OdradekBroker) -> None:
    admin = Admin(broker.bootstrap).client
    wanted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "60000"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    [altered] = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, "topic", incremental_configs=entries)]
    ).values()
    altered.result(ADMIN_TIMEOUT_S)


def keep_producing(broker: OdradekBroker, stop: threading.Event) -> None:
    """A few hundred batches of 16 KB a second."""
    batch = build_batch([SimpleRecord(int(time.time() * 1000), b"key", bytes(VALUE_BYTES))] * RECORDS_A_BATCH)
    with RawClient(broker.host, broker.port) as client:
        while not stop.wait(0.003):
            produce(client, "load", batch)


def keep_consuming(broker: OdradekBroker, stop: threading.Event) -> None:
    """Read the topic that is being compacted from its beginning, again and again, 1 MB at a time."""
    offset = 0
    with RawClient(broker.host, broker.port) as client:
        while not stop.wait(0.01):
            partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            fetch = build(
                ApiKey.FETCH,
                replica_id=-1,
                max_wait_ms=10,
                min_bytes=1,
                max_bytes=1 << 20,
                session_epoch=-1,
                topics=[{"topic": "topic", "partitions": [partition]}],
            )
            found = client.call(fetch, 11).responses[0].partitions[0]  # type: ignore[attr-defined]
            assert found.error_code == 0, found
            offset = offset + 1000 if offset + 2000 < found.high_watermark else 0


def report(name: str, log: str) -> None:
    summary = SUMMARY.search(log)
    assert summary is not None, "the broker has not said how late its loop was"
    print(f"{name}: {summary[1]}")
    for line in HELD_UP.findall(log):
        print(f"    {line}")


if __name__ == "__main__":
    main()
