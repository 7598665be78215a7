"""`compare_topics` on two topics of ten million records each: the planted differences are found, on two cores, in a
driver with 1 GiB of heap.

Variable: ODRADEK_SOAK_RECORDS, of each topic (10,000,000).
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import psutil
import pytest

from tests.support.admin import Admin
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.process import ManagedProcess

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]

RECORDS = int(os.environ.get("ODRADEK_SOAK_RECORDS", "10000000"))
PARTITIONS = 4
KEYS_PER_RECORD = 0.5
HEAP = "1g"
MEMORY_LIMIT_BYTES = 3 * 2**30
"""Of the JVM and its Python workers together, the driver with its heap of 1 GiB included."""
END_TIMEOUT_S = 3_600

Record = tuple[bytes, bytes, int]


def original() -> Iterator[Record]:
    """Key, value and partition; a key has two records, far from each other."""
    keys = int(RECORDS * KEYS_PER_RECORD)
    for number in range(RECORDS):
        key = number % keys
        yield b"%d" % key, b"value %d" % number, key % PARTITIONS


def copy_with_mistakes() -> Iterator[Record]:
    """At 125 places in the first half a record is lost, doubled, changed or late, in turn. Late ones come after the
    second record of their key.
    """
    late: list[Record] = []
    for number, record in enumerate(original()):
        mistake = number * 1_000 // RECORDS if number % (RECORDS // 1_000) == 7 else -1
        if mistake == -1 or mistake % 4 != 0 or mistake >= 500:
            yield record
        elif mistake % 16 == 0:
            continue
        elif mistake % 16 == 4:
            yield record
            yield record
        elif mistake % 16 == 8:
            yield record[0], b"changed", record[2]
        else:
            late.append(record)
    yield from late


def write(bootstrap: str, topic: str, records: Iterator[Record]) -> None:
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 900_000, "compression.type": "lz4"}
    settings |= {"queue.buffering.max.messages": 1_000_000, "acks": "1"}
    producer = confluent_kafka.Producer(settings)
    for key, value, partition in records:
        while True:
            try:
                producer.produce(topic, value, key, partition=partition, timestamp=1_700_000_000_000)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


class PeakMemory:
    """Samples the resident memory of a process and its children, the shared pages of forks counted once (PSS)."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            total = 0
            for process in [self._process, *self._process.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.peak_bytes = max(self.peak_bytes, total)


def test_ten_million_records_fit_into_a_small_driver(tmp_path: Path) -> None:
    broker = OdradekBroker(tmp_path / "broker", {})
    broker.start()
    try:
        for topic, records in (("original", original()), ("copy", copy_with_mistakes())):
            Admin(broker.bootstrap).create_topic(topic, PARTITIONS)
            write(broker.bootstrap, topic, records)
        arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", "original", "--other-topic", "copy"]
        arguments += ["--master", "local[2]", "--conf", f"spark.driver.memory={HEAP}", "--show", "0"]
        arguments += ["--conf", f"spark.local.dir={tmp_path / 'local'}"]
        command = [sys.executable, "-m", "spark_jobs.compare_topics", *arguments]  # with the JVM as users have it
        job = ManagedProcess(command, tmp_path / "job.log", cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY)})
        began = time.monotonic()
        job.start()
        memory = PeakMemory(job.pid)
        try:
            status = job.wait(END_TIMEOUT_S)
        finally:
            memory.stop()
        took_s = time.monotonic() - began
    finally:
        broker.close()
    log = job.log_text()
    print(log)
    print(f"{RECORDS:,} records in each topic: {took_s:.0f} s, {memory.peak_bytes / 2**20:.0f} MiB at most")
    assert status == 3, log
    row = next(line.split() for line in log.splitlines() if line.startswith("original "))
    assert row[2] == f"{RECORDS:,}"
    assert row[5:] == ["32", "31", "31", "31"]
    assert memory.peak_bytes < MEMORY_LIMIT_BYTES
    assert re.search(r"^different: 32 missing, 31 extra, 31 changed, 31 reordered$", log, re.MULTILINE)
