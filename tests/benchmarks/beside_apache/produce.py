"""1,000-byte records from one librdkafka producer, acks=all: the broker's cost of a GB, and the throughput."""

from __future__ import annotations

import time
from collections.abc import Mapping

import confluent_kafka

from tests.benchmarks.contenders import Contender, Contenders, create_topic, delete_topic
from tests.benchmarks.measure import Table, Usage, usage_of

RECORD_BYTES = 1000
MEASURED_BYTES = 300_000_000
WARM_UP_BYTES = 600_000_000
FLUSH_TIMEOUT_S = 120


def run(contenders: Contenders) -> None:
    table = Table(f"Produce {RECORD_BYTES:,} B records, librdkafka, acks=all, {MEASURED_BYTES / 1e6:.0f} MB a row")
    with contenders.both("produce") as (odradek, apache):
        measure(odradek, 6, 131_072, WARM_UP_BYTES // 10)
        measure(apache, 6, 16_384, WARM_UP_BYTES // 2)
        measure(apache, 6, 131_072, WARM_UP_BYTES // 2)
        for batch_bytes in (16_384, 131_072):
            for partitions in (1, 6):
                ours, our_s = measure(odradek, partitions, batch_bytes, MEASURED_BYTES)
                theirs, their_s = measure(apache, partitions, batch_bytes, MEASURED_BYTES)
                name = f"{batch_bytes >> 10} KB batches, {partitions} partition{'s' * (partitions > 1)}"
                gigabytes = MEASURED_BYTES / 1e9
                table.row(name, "CPU s/GB", ours.total_s / gigabytes, theirs.total_s / gigabytes)
                table.row("  of it user", "s/GB", ours.user_s / gigabytes, theirs.user_s / gigabytes)
                table.row("  of it kernel", "s/GB", ours.system_s / gigabytes, theirs.system_s / gigabytes)
                table.row("  throughput", "MB/s", MEASURED_BYTES / our_s / 1e6, MEASURED_BYTES / their_s / 1e6)


def measure(broker: Contender, partitions: int, batch_bytes: int, total_bytes: int) -> tuple[Usage, float]:
    """Processor time of the broker and wall seconds for `total_bytes` into a topic of its own."""
    topic = f"produce-{partitions}-{batch_bytes}-{total_bytes}"
    create_topic(broker, topic, partitions)
    before, started = usage_of(broker.pid), time.perf_counter()
    fill(broker, topic, partitions, total_bytes, batch_bytes)
    elapsed, used = time.perf_counter() - started, usage_of(broker.pid) - before
    delete_topic(broker, topic)
    return used, elapsed


def fill(
    broker: Contender,
    topic: str,
    partitions: int,
    total_bytes: int,
    batch_bytes: int,
    client: Mapping[str, str] | None = None,
) -> None:
    """Produce `total_bytes`, spread evenly; returns when everything is acknowledged. `client`: more of its settings."""
    failures: list[object] = []

    def delivered(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "acks": "all",
            "batch.size": batch_bytes,
            "batch.num.messages": 1_000_000,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
            "delivery.report.only.error": True,
            **(client or {}),
        }
    )
    value = bytes(RECORD_BYTES)
    for number in range(total_bytes // RECORD_BYTES):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0, "not everything was acknowledged"
    assert not failures, failures[0]
