"""Transactions of 1, 100 and 10,000 records of 100 bytes on four partitions, one after the other, by librdkafka.

The client waits for its coordinator between transactions when it is told to, as applications do: Apache Kafka answers
EndTxn before the markers are written, and the next transaction may have to come again.
"""

from __future__ import annotations

import time

import confluent_kafka

from tests.benchmarks.contenders import Contender, Contenders, create_topic
from tests.benchmarks.measure import Table, percentile, usage_of

TOPIC = "transactions"
PARTITIONS = 4
VALUE = bytes(100)
TIMEOUT_S = 60
SIZES = ((1, 300), (100, 200), (10_000, 20))
"""Records of a transaction, and how many are measured."""
WARM_UP = 3
"""Times as many before, for Apache: its compilers want to have seen it."""


def run(contenders: Contenders) -> None:
    table = Table("Transactions on 4 partitions, one after the other")
    with contenders.both("transactions") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, PARTITIONS)
        for records, count in SIZES:
            commit_many(odradek, records, count // 10)
            commit_many(apache, records, count * WARM_UP)
            ours, our_commits, our_cpu = commit_many(odradek, records, count)
            theirs, their_commits, their_cpu = commit_many(apache, records, count)
            name = f"{records:,} record{'s' if records > 1 else ''}"
            table.row(name, "transactions/s", count / ours, count / theirs)
            table.row(f"{name}, commit p50", "ms", percentile(our_commits, 0.5), percentile(their_commits, 0.5))
            table.row(f"{name}, commit p99", "ms", percentile(our_commits, 0.99), percentile(their_commits, 0.99))
            table.row(f"{name}, broker", "CPU ms/transaction", our_cpu / count * 1e3, their_cpu / count * 1e3)


def commit_many(broker: Contender, records: int, count: int) -> tuple[float, list[float], float]:
    """Seconds in all, sorted milliseconds of each commit, and the broker's processor seconds."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": f"{broker.host}:{broker.port}",
            "transactional.id": f"bench-{records}",
            "linger.ms": 0 if records == 1 else 5,
            "queue.buffering.max.messages": 2 * 10_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    commits = []
    before = usage_of(broker.pid)
    started = time.perf_counter()
    for _ in range(count):
        producer.begin_transaction()
        for number in range(records):
            producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
        producer.flush(TIMEOUT_S)
        decided = time.perf_counter()
        producer.commit_transaction(TIMEOUT_S)
        commits.append((time.perf_counter() - decided) * 1000)
    elapsed = time.perf_counter() - started
    return elapsed, sorted(commits), (usage_of(broker.pid) - before).total_s
