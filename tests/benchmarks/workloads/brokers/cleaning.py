"""Producing to a compacted topic while its cleaner runs, and to one whose oldest segments are deleted meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.comparison.costs import bulk_figures, cost_of
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import Contender, Contenders, create_topic, delete_topic

PARTITIONS: Final = 6
RECORDS: Final = 200_000
BATCH_BYTES: Final = 131_072
KEYS: Final = tuple(b"key-%d" % number for number in range(5_000))
SEGMENT_BYTES: Final = 1 << 20
BUSY: Final = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
}
"""The broker looks for work every tenth of a second, instead of every 15 s and every 5 minutes."""

COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.1",
}
DELETED: Final = {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": str(SEGMENT_BYTES)}


@contextmanager
def _busy(contenders: Contenders, label: str) -> Iterator[Side]:
    broker = contenders.new(label, "cleaning", BUSY)
    try:
        broker.start()
        yield Side(label, contenders, [broker])
    finally:
        broker.close()


def produce(configs: Mapping[str, str], keys: Sequence[bytes | None], side: Side) -> Figures:
    topic, records = side.new_topic("cleaned"), side.amount(RECORDS, at_least=len(KEYS) * 4)
    create_topic(side.broker, topic, PARTITIONS, configs)
    client = {**side.librdkafka, "batch.size": BATCH_BYTES}
    cost = cost_of(side, partial(librdkafka.produce, client, topic, PARTITIONS, records, keys=keys))
    kept = bytes_of(side.broker, topic)
    delete_topic(side.broker, topic)
    size = records * RECORD_BYTES
    return {**bulk_figures(cost, size), ("still there at the end", "% of the bytes kept"): kept / size * 100}


def bytes_of(broker: Contender, topic: str) -> int:
    return sum(path.stat().st_size for path in broker.log_dir.glob(f"{topic}-*/*.log"))


BUSY_NODE: Final = Setup("one node that looks for logs to clean all the time", _busy)

WORKLOADS: Final = (
    Workload(
        name="cleaning/plain",
        description="Produce 1,000 B records with keys to a topic that keeps all, 128 KB batches, 6 partitions",
        setup=BUSY_NODE,
        drive=partial(produce, {}, KEYS),
    ),
    Workload(
        name="cleaning/compacted",
        description=f"Produce the same to a compacted topic, {len(KEYS):,} keys: with what compaction costs meanwhile",
        setup=BUSY_NODE,
        drive=partial(produce, COMPACTED, KEYS),
    ),
    Workload(
        name="cleaning/deleted",
        description="Produce the same to a topic with retention.bytes=1 MB: with what deletion costs meanwhile",
        setup=BUSY_NODE,
        drive=partial(produce, DELETED, KEYS),
    ),
)
