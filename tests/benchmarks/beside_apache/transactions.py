"""Transactions of 1, 100 and 10,000 records of 100 bytes on four partitions, one after the other.

Their number in a second is measured with librdkafka. It retries the next transaction until the coordinator accepts it:
EndTxn is answered before the markers are written. The time of a commit is measured on a bare connection, because
librdkafka itself takes the greater part of it (after 10,000 records it frees the messages): from EndTxn to its answer,
when the transaction is decided, and on until its markers are written, when consumers see it and the next one may begin.

The brokers take turns, because within a minute the speed of a machine changes by more than the difference measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import confluent_kafka

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import Contender, Contenders, create_topic
from tests.benchmarks.measure import Table, percentile, usage_of
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

TOPIC = "transactions"
PARTITIONS = 4
VALUE = bytes(100)
TIMEOUT_S = 60
SIZES = ((1, 200), (100, 200), (10_000, 40))
"""Records of a transaction, and how many are measured in a turn."""
TURNS = 6
"""Of each broker, one after the other."""
WARM_UP = 3
"""Turns before the measurement, for Apache's compilers."""


def run(contenders: Contenders) -> None:
    table = Table("Transactions on 4 partitions, one after the other")
    with contenders.both("transactions") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, TOPIC, PARTITIONS)
        for records, count in SIZES:
            produce_many(odradek, records, count // 10)
            for _ in range(WARM_UP):
                produce_many(apache, records, count)
            ours, theirs = Measured(), Measured()
            for _ in range(TURNS):
                ours.take_turn(odradek, records, count)
                theirs.take_turn(apache, records, count)
            name = f"{records:,} record{'s' if records > 1 else ''}"
            table.row(name, "transactions/s", ours.per_second, theirs.per_second)
            for step in Commit._fields:
                for percent in (50, 99):
                    table.row(f"{name}, {step} p{percent}", "ms", *(of.commit(step, percent) for of in (ours, theirs)))
            table.row(f"{name}, broker", "CPU ms/transaction", ours.cpu_ms, theirs.cpu_ms)


class Commit(NamedTuple):
    """Milliseconds from EndTxn on."""

    decided: float
    complete: float


@dataclass(slots=True)
class Measured:
    """The sums of a broker's turns."""

    count: int = 0
    elapsed_s: float = 0
    cpu_s: float = 0
    commits: list[Commit] = field(default_factory=list)

    def take_turn(self, broker: Contender, records: int, count: int) -> None:
        elapsed_s, cpu_s = produce_many(broker, records, count)
        self.count += count
        self.elapsed_s += elapsed_s
        self.cpu_s += cpu_s
        self.commits += commit_many(broker, f"bench-{records}", TOPIC, records, count)

    @property
    def per_second(self) -> float:
        return self.count / self.elapsed_s

    @property
    def cpu_ms(self) -> float:
        return self.cpu_s / self.count * 1000

    def commit(self, step: str, percent: int) -> float:
        return percentile(sorted(getattr(commit, step) for commit in self.commits), percent / 100)


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


def commit_many(broker: Contender, transactional_id: str, topic: str, records: int, count: int) -> list[Commit]:
    """How long commits take, by a producer that does nothing else meanwhile; `broker` coordinates and leads all."""
    partitions = list(range(min(records, PARTITIONS)))
    values = [SimpleRecord(int(time.time() * 1000), None, VALUE)] * (records // len(partitions))
    with RawClient(broker.host, broker.port) as client:
        init = build(ApiKey.INIT_PRODUCER_ID, transactional_id=transactional_id, transaction_timeout_ms=60_000)
        given = _call(client, init, 4, lambda answer: answer)
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        who = {"transactional_id": transactional_id, **producer}
        topics = [{"name": topic, "partitions": partitions}]
        old = {f"v3_and_below_{name}": value for name, value in (*who.items(), ("topics", topics))}
        add = build(ApiKey.ADD_PARTITIONS_TO_TXN, **old)
        end = build(ApiKey.END_TXN, **who, committed=True)
        commits = []
        begin(client, add)
        for number in range(count):
            batch = build_batch(values, base_sequence=number * len(values), is_transactional=True, **producer)
            data = [{"index": partition, "records": memoryview(batch)} for partition in partitions]
            written = {"name": topic, "partition_data": data}
            request = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 60_000, "topic_data": [written]}
            _call(
                client, build(ApiKey.PRODUCE, **request), 9, lambda answer: answer.responses[0].partition_responses[0]
            )
            started = time.perf_counter()
            _call(client, end, 3, lambda answer: answer)
            decided = time.perf_counter()
            begin(client, add)
            complete = time.perf_counter()
            commits.append(Commit((decided - started) * 1000, (complete - started) * 1000))
        _call(client, end, 3, lambda answer: answer)
    return commits


def begin(client: RawClient, add: Request) -> None:
    _call(client, add, 3, lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0])


def _call(client: RawClient, request: Request, version: int, result: Callable[[Any], Any]) -> Any:
    """Repeat the request until the earlier transaction has ended; `result` finds the error code in the answer."""
    while True:
        answer = result(client.call(request, version))
        error = getattr(answer, "error_code", None) or getattr(answer, "partition_error_code", 0)
        if error not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            assert error == ErrorCode.NONE, answer
            return answer
