"""Transactions on a bare connection, and how long each step of a commit takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import Contender
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PARTITIONS: Final = 4
VALUE: Final = bytes(100)


class Commit(NamedTuple):
    """Milliseconds from EndTxn on."""

    decided: float
    complete: float


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
