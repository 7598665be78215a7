"""Transactions of 1, 100 and 10,000 records of 100 bytes on four partitions, one after the other.

Their number in a second is measured with librdkafka. It retries the next transaction until the coordinator accepts it:
EndTxn is answered before the markers are written. The time of a commit is measured on a bare connection, because
librdkafka itself takes the greater part of it (after 10,000 records it frees the messages): from EndTxn to its answer,
when the transaction is decided, and on until its markers are written, when consumers see it and the next one may begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import confluent_kafka

from tests.benchmarks.clients.transactions import PARTITIONS, VALUE, Commit, commit_many
from tests.benchmarks.comparison.costs import cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.measure import percentile

TOPIC: Final = "transactions"
TIMEOUT_S: Final = 60
SIZES: Final = ((1, 200), (100, 200), (10_000, 40))
"""Records of a transaction, and how many transactions there are in a turn."""


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            side.memo[TOPIC] = True
            create_topic(side.broker, TOPIC, PARTITIONS)


def drive(records: int, transactions: int, side: Side) -> Figures:
    count = side.amount(transactions, at_least=5)
    producer = new_producer(side, records)
    cost = cost_of(side, partial(produce_many, producer, records, count))
    commits = commit_many(side.broker, f"bench-{records}", TOPIC, records, count)
    figures = {("transactions", "transactions/s"): count / cost.elapsed_s}
    for step in Commit._fields:
        ordered = sorted(getattr(commit, step) for commit in commits)
        for percent in (50, 99):
            figures[f"{step} p{percent}", "ms"] = percentile(ordered, percent / 100)
    return {**figures, ("broker", "CPU ms/transaction"): cost.usage.total_s / count * 1000}


def new_producer(side: Side, records: int) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {
            **side.librdkafka,
            "transactional.id": f"bench-{records}",
            "linger.ms": 0 if records == 1 else 5,
            "queue.buffering.max.messages": 2 * 10_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def produce_many(producer: confluent_kafka.Producer, records: int, count: int) -> None:
    for _ in range(count):
        producer.begin_transaction()
        for number in range(records):
            producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
        producer.flush(TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)


WORKLOADS: Final = tuple(
    Workload(
        name=f"transactions/{records}",
        description=f"Transactions of {records:,} record{'s' * (records > 1)} of {len(VALUE)} B "
        f"on {PARTITIONS} partitions, one after the other",
        setup=ONE_NODE,
        prepare=prepare,
        drive=partial(drive, records, transactions),
    )
    for records, transactions in SIZES
)
