"""Reading back 1,000-byte records with one librdkafka consumer, and whether the records leave by sendfile."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import confluent_kafka

from tests.benchmarks.beside_apache.produce import RECORD_BYTES, fill
from tests.benchmarks.contenders import SETTINGS, Contender, Contenders, create_topic
from tests.benchmarks.measure import Table, Usage, usage_of
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.counting_daemon import MARK
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.process import ManagedProcess

TOPIC = "consume"
PARTITIONS = 6
BATCH_BYTES = 131_072
TOTAL_BYTES = 500_000_000
ROUNDS = 2
"""The first one warms up, and the second one is shown."""


def run(contenders: Contenders) -> None:
    table = Table(
        f"Consume {RECORD_BYTES:,} B records, librdkafka, {PARTITIONS} partitions, {TOTAL_BYTES / 1e6:.0f} MB"
    )
    with contenders.both("consume") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, PARTITIONS)
            fill(broker, TOPIC, PARTITIONS, TOTAL_BYTES, BATCH_BYTES)
        for _ in range(ROUNDS):
            ours, our_s = measure(odradek)
            theirs, their_s = measure(apache)
        gigabytes = TOTAL_BYTES / 1e9
        table.row("processor time", "CPU s/GB", ours.total_s / gigabytes, theirs.total_s / gigabytes)
        table.row("  of it user", "s/GB", ours.user_s / gigabytes, theirs.user_s / gigabytes)
        table.row("  of it kernel", "s/GB", ours.system_s / gigabytes, theirs.system_s / gigabytes)
        table.row("  throughput", "MB/s", TOTAL_BYTES / our_s / 1e6, TOTAL_BYTES / their_s / 1e6)
        odradek.stop()
    print_how_it_left(odradek)


def measure(broker: Contender) -> tuple[Usage, float]:
    """Processor time of the broker and wall seconds for the whole topic."""
    before, started = usage_of(broker.pid), time.perf_counter()
    drain(broker.bootstrap)
    return usage_of(broker.pid) - before, time.perf_counter() - started


def drain(bootstrap: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1,
            "max.partition.fetch.bytes": 1 << 20,
            "queued.min.messages": 200_000,
            "check.crcs": False,
        }
    )
    read_all(consumer, TOPIC, PARTITIONS, TOTAL_BYTES // RECORD_BYTES)


def read_all(consumer: confluent_kafka.Consumer, topic: str, partitions: int, records: int) -> None:
    """Read the topic from its beginning, and close the consumer."""
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)])
    while records:
        messages = consumer.consume(10_000, 30)
        assert messages, f"{records} records are missing"
        assert not any(message.error() for message in messages)
        records -= len(messages)
    consumer.close()


def print_how_it_left(broker: OdradekBroker) -> None:
    """The same topic once more, from a daemon that counts which calls move the bytes of its segments."""
    command = [sys.executable, "-m", "tests.support.processes.counting_daemon", "serve", "--port", str(broker.port)]
    command += ["--data", str(broker.log_dir)]
    for key, value in SETTINGS.items():
        command += ["--override", f"{key}={value}"]
    environment = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
    daemon = ManagedProcess(command, broker.log_dir.parent / "counting.log", cwd=broker.log_dir.parent, env=environment)
    daemon.start()
    try:
        daemon.wait_for_line(r"\[KafkaServer id=\d+\] started", 20)
        os.kill(daemon.pid, signal.SIGUSR1)
        daemon.wait_for_line(MARK, 10)
        drain(broker.bootstrap)
        os.kill(daemon.pid, signal.SIGUSR1)
        counts = json.loads(daemon.wait_for_line(rf"(?s){MARK}.*{MARK}([^\n]*)\n", 10)[1])
    finally:
        daemon.terminate()
    sent, read = counts.get("sendfile", 0), counts.get("python", 0)
    print(f"left by sendfile: {sent / (sent + read):.2%} of {(sent + read) / 1e6:.0f} MB")
