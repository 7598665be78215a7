"""One consumer of 1,000-byte records: from the page cache, from the disk, at the end of the log; and by sendfile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.clients import java_tools, librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.clients.processes import client_processes
from tests.benchmarks.comparison.costs import bulk_figures, cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import ODRADEK, Setup, Side, Workload
from tests.benchmarks.contenders import SETTINGS, Contender, Contenders, create_topic, delete_topic
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.counting_daemon import MARK
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

TOPIC: Final = "consume"
PARTITIONS: Final = 6
RECORDS: Final = 300_000
BATCH_BYTES: Final = 131_072
READ_FROM_DISK: Final = 0.5
"""The share of a cold topic that must come from the disk, so that it was cold."""


def fill(sides: Sequence[Side]) -> None:
    """Each side has the same topic, which is written once."""
    for side in sides:
        if TOPIC not in side.memo:
            side.memo[TOPIC] = side.amount(RECORDS, at_least=PARTITIONS)
            create_topic(side.broker, TOPIC, PARTITIONS)
            _produce(side, TOPIC, side.memo[TOPIC])


def _produce(side: Side, topic: str, records: int) -> None:
    librdkafka.produce({**side.librdkafka, "batch.size": BATCH_BYTES}, topic, PARTITIONS, records)


def read(side: Side) -> Figures:
    records = side.memo[TOPIC]
    cost = cost_of(side, partial(librdkafka.consume, side.librdkafka, TOPIC, PARTITIONS, records))
    return bulk_figures(cost, records * RECORD_BYTES)


def read_by_java(side: Side) -> Figures:
    records = side.memo[TOPIC]
    cost = cost_of(side, partial(java_tools.consume, side.bootstrap, TOPIC, records))
    return bulk_figures(cost, records * RECORD_BYTES, records / cost.returned)


def read_cold(side: Side) -> Figures:
    drop_from_page_cache(side.broker)
    before = bytes_read(side.broker)
    figures = read(side)
    assert bytes_read(side.broker) - before >= READ_FROM_DISK * side.memo[TOPIC] * RECORD_BYTES, "it was not cold"
    return figures


def drop_from_page_cache(broker: Contender) -> None:
    """The segments of the topic. Only what is on the disk can leave the cache, so they are synced first."""
    for path in broker.log_dir.glob(f"{TOPIC}-*/*.log"):
        descriptor = os.open(path, os.O_RDWR)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def bytes_read(broker: Contender) -> int:
    """What the broker has had read from disks."""
    lines = Path(f"/proc/{broker.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def tail(side: Side) -> Figures:
    """A consumer in a process of its own reads what is produced at the same time: the cost of both."""
    records = side.amount(RECORDS, at_least=PARTITIONS)
    topic = side.new_topic("tailed")
    create_topic(side.broker, topic, PARTITIONS)

    def work() -> None:
        reading = consumer.submit(librdkafka.consume, side.librdkafka, topic, PARTITIONS, records)
        _produce(side, topic, records)
        reading.result()

    with client_processes(1) as consumer:
        cost = cost_of(side, work)
    delete_topic(side.broker, topic)
    return bulk_figures(cost, records * RECORD_BYTES)


class CountingBroker(OdradekBroker):
    """Counts which calls move the bytes of its segments."""

    module = "tests.support.processes.counting_daemon"
    python_path = (REPOSITORY / "src", REPOSITORY)

    def counts(self) -> dict[str, int]:
        """Since it was asked before."""
        printed = self.log_text().count(MARK)
        os.kill(self.pid, signal.SIGUSR1)
        self.wait_for_line(rf"(?s)(?:{MARK}.*?){{{printed + 1}}}\n")
        last = self.log_text().split(MARK)[-1]
        return dict(json.loads(last.splitlines()[0]))


@contextmanager
def _counting(contenders: Contenders, label: str) -> Iterator[Side]:
    broker = CountingBroker(contenders.new_directory("counting"), SETTINGS, port=free_port())
    try:
        broker.start()
        yield Side(label, contenders, [broker])
    finally:
        broker.close()


def share_sent(side: Side) -> Figures:
    assert isinstance(side.broker, CountingBroker)
    side.broker.counts()
    librdkafka.consume(side.librdkafka, TOPIC, PARTITIONS, side.memo[TOPIC])
    counts = side.broker.counts()
    sent, read_into_python = counts.get("sendfile", 0), counts.get("python", 0)
    return {("copied into the process", "% of the bytes"): 100 * read_into_python / (sent + read_into_python)}


COUNTING: Final = Setup("one node that counts its calls", _counting, (ODRADEK,))

WORKLOADS: Final = (
    Workload(
        name="consume/page-cache",
        description=f"Consume {RECORD_BYTES:,} B records by librdkafka, {PARTITIONS} partitions, all in the page cache",
        setup=ONE_NODE,
        prepare=fill,
        drive=read,
    ),
    Workload(
        name="consume/java",
        description=f"Consume the same by kafka-consumer-perf-test, {PARTITIONS} partitions",
        setup=ONE_NODE,
        prepare=fill,
        drive=read_by_java,
    ),
    Workload(
        name="consume/cold",
        description="Consume the same by librdkafka, after it was dropped from the page cache",
        setup=ONE_NODE,
        prepare=fill,
        drive=read_cold,
        warm_up=1,
    ),
    Workload(
        name="consume/tailing",
        description="Produce by librdkafka and consume it at the same time in another process: the cost of both",
        setup=ONE_NODE,
        drive=tail,
    ),
    Workload(
        name="consume/sendfile",
        description="Which share of the consumed bytes is copied into the process instead of sent by sendfile",
        setup=COUNTING,
        prepare=fill,
        drive=share_sent,
        warm_up=0,
    ),
)
