"""Transactions of 1, 100 and 10,000 records of 100 bytes on four partitions, one after the other.

How many there are in a second is measured with librdkafka. It waits for its coordinator between transactions when it is
told to, as applications do: EndTxn is answered before the markers are written, and the next transaction may have to
come again. How long a commit takes is measured on a bare connection, from EndTxn to its answer: in librdkafka the
greater part of a commit is its own (of 10,000 records it frees the messages meanwhile).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import confluent_kafka

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.schema import Request
from tests.benchmarks.contenders import Contender, Contenders, create_topic
from tests.benchmarks.measure import Table, percentile, usage_of
from tests.support.raw_client import RawClient
from tests.support.requests import build

TOPIC = "transactions"
PARTITIONS = 4
VALUE = bytes(100)
TIMEOUT_S = 60
SIZES = ((1, 500), (100, 500), (10_000, 100))
"""Records of a transaction, and how many are measured."""
WARM_UP = 3
"""Times as many before, for Apache: its compilers want to have seen it."""


def run(contenders: Contenders) -> None:
    table = Table("Transactions on 4 partitions, one after the other")
    with contenders.both("transactions") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, PARTITIONS)
        for records, count in SIZES:
            produce_many(odradek, records, count // 10)
            produce_many(apache, records, count * WARM_UP)
            ours, our_cpu = produce_many(odradek, records, count)
            theirs, their_cpu = produce_many(apache, records, count)
            our_commits, their_commits = (commit_many(broker, records, count) for broker in (odradek, apache))
            name = f"{records:,} record{'s' if records > 1 else ''}"
            table.row(name, "transactions/s", count / ours, count / theirs)
            table.row(f"{name}, commit p50", "ms", percentile(our_commits, 0.5), percentile(their_commits, 0.5))
            table.row(f"{name}, commit p99", "ms", percentile(our_commits, 0.99), percentile(their_commits, 0.99))
            table.row(f"{name}, broker", "CPU ms/transaction", our_cpu / count * 1e3, their_cpu / count * 1e3)


def produce_many(broker: Contender, records: int, count: int) -> tuple[float, float]:
    """Seconds in all, and the broker's processor seconds."""
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
    before = usage_of(broker.pid)
    started = time.perf_counter()
    for _ in range(count):
        producer.begin_transaction()
        for number in range(records):
            producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
        producer.flush(TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)
    elapsed = time.perf_counter() - started
    return elapsed, (usage_of(broker.pid) - before).total_s


def commit_many(broker: Contender, records: int, count: int) -> list[float]:
    """Sorted milliseconds from EndTxn to its answer, by a producer that does nothing else meanwhile."""
    transactional_id = f"bench-{records}"
    partitions = list(range(min(records, PARTITIONS)))
    values = [SimpleRecord(int(time.time() * 1000), None, VALUE)] * (records // len(partitions))
    with RawClient(broker.host, broker.port) as client:
        init = build(ApiKey.INIT_PRODUCER_ID, transactional_id=transactional_id, transaction_timeout_ms=60_000)
        given = _call(client, init, 4, lambda answer: answer)
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        who = {"transactional_id": transactional_id, **producer}
        topics = [{"name": TOPIC, "partitions": partitions}]
        old = {f"v3_and_below_{name}": value for name, value in (*who.items(), ("topics", topics))}
        add = build(ApiKey.ADD_PARTITIONS_TO_TXN, **old)
        end = build(ApiKey.END_TXN, **who, committed=True)
        commits = []
        for number in range(count):
            _call(client, add, 3, lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0])
            batch = build_batch(values, base_sequence=number * len(values), is_transactional=True, **producer)
            data = [{"index": partition, "records": memoryview(batch)} for partition in partitions]
            topic = {"name": TOPIC, "partition_data": data}
            request = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 60_000, "topic_data": [topic]}
            _call(
                client, build(ApiKey.PRODUCE, **request), 9, lambda answer: answer.responses[0].partition_responses[0]
            )
            decided = time.perf_counter()
            _call(client, end, 3, lambda answer: answer)
            commits.append((time.perf_counter() - decided) * 1000)
    return sorted(commits)


def _call(client: RawClient, request: Request, version: int, result: Callable[[Any], Any]) -> Any:
    """Ask until the transaction before has come to its end; what the answer says is where `result` finds it."""
    while True:
        answer = result(client.call(request, version))
        error = getattr(answer, "error_code", None) or getattr(answer, "partition_error_code", 0)
        if error != ErrorCode.CONCURRENT_TRANSACTIONS:
            assert error == ErrorCode.NONE, answer
            return answer
