"""How cost grows with the partitions of a broker, 10 to 10,000: produce to all, fetch from all, metadata, restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.benchmarks.comparison.costs import cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, create_topic, delete_topic
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

TOPIC: Final = "partitions"
COUNTS: Final = (10, 100, 1_000, 10_000)
AT_ONCE: Final = 500
"""Partitions in a request."""
PARTITIONS_TOUCHED: Final = 20_000
"""In a turn: with fewer partitions, each has more rounds."""
RECORD: Final = batch(bytes(100))
LOOK_PAUSE_S: Final = 0.02
PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 9, 12, 9


def prepare(count: int, sides: Sequence[Side]) -> None:
    """The topic of another count goes; each partition gets a record."""
    for side in sides:
        if side.memo.get(TOPIC, ("", 0))[1] == count:
            continue
        if TOPIC in side.memo:
            delete_topic(side.broker, side.memo[TOPIC][0])
        topic = side.new_topic(TOPIC)
        create_topic(side.broker, topic, count)
        side.memo[TOPIC] = (topic, count)


def slices(count: int) -> Iterator[range]:
    return (range(first, min(count, first + AT_ONCE)) for first in range(0, count, AT_ONCE))


def produce_requests(topic: str, count: int) -> Iterator[Request]:
    for some in slices(count):
        data = [{"index": index, "records": RECORD} for index in some]
        yield build(ApiKey.PRODUCE, acks=-1, timeout_ms=60_000, topic_data=[{"name": topic, "partition_data": data}])


def fetch_requests(topic: str, count: int) -> Iterator[Request]:
    for some in slices(count):
        wanted = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} for index in some]
        yield build(
            ApiKey.FETCH,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=50 << 20,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": wanted}],
        )


def call_all(client: RawClient, requests: Sequence[Request], version: int, errors: Callable[[Any], set[int]]) -> None:
    for request in requests:
        found = errors(client.call(request, version))
        assert found == {ErrorCode.NONE}, found


def produce_errors(answer: Any) -> set[int]:
    return {each.error_code for each in answer.responses[0].partition_responses}


def fetch_errors(answer: Any) -> set[int]:
    return {each.error_code for each in answer.responses[0].partitions}


def metadata_errors(answer: Any) -> set[int]:
    return {each.error_code for each in answer.topics[0].partitions}


def drive(side: Side) -> Figures:
    topic, count = side.memo[TOPIC]
    metadata = build(ApiKey.METADATA, topics=[{"name": topic}])
    work = {
        "produce to all": (list(produce_requests(topic, count)), PRODUCE_VERSION, produce_errors),
        "fetch from all": (list(fetch_requests(topic, count)), FETCH_VERSION, fetch_errors),
        "metadata": ([metadata], METADATA_VERSION, metadata_errors),
    }
    figures: dict[tuple[str, str], float] = {}
    with RawClient(side.broker.host, side.broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        for name, (requests, version, errors) in work.items():
            rounds = max(1, side.amount(PARTITIONS_TOUCHED) // count)
            cost = cost_of(side, partial(call_all, client, requests * rounds, version, errors))
            figures[name, "ms"] = cost.elapsed_s / rounds * 1000
            figures[name, "CPU µs/partition"] = cost.usage.total_s / rounds / count * 1e6
    return {**figures, ("resident then", "MB"): side.resident_mb()}


def restart(side: Side) -> Figures:
    """A clean stop, and a start until each partition has a leader."""
    topic, count = side.memo[TOPIC]
    began = time.perf_counter()
    side.broker.stop()
    stopped = time.perf_counter()
    side.broker.start()
    metadata = build(ApiKey.METADATA, topics=[{"name": topic}])
    with RawClient(side.broker.host, side.broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        while True:
            answer: Any = client.call(metadata, METADATA_VERSION)
            led = sum(each.leader_id >= 0 for each in answer.topics[0].partitions)
            if led == count and metadata_errors(answer) == {ErrorCode.NONE}:
                break
            time.sleep(LOOK_PAUSE_S)
    ready_s = time.perf_counter() - stopped
    return {
        ("stop", "s"): stopped - began,
        ("start until all are led", "s"): ready_s,
        ("processor time of the start", "CPU s"): side.usage().total_s,
    }


WORKLOADS: Final = tuple(
    workload
    for count in COUNTS
    for workload in (
        Workload(
            name=f"partitions/{count}",
            description=f"A topic of {count:,} partitions: a record to each, a fetch of each, its metadata",
            setup=ONE_NODE,
            prepare=partial(prepare, count),
            drive=drive,
            main=count <= 1_000,
            series=("partitions", float(count)),
        ),
        Workload(
            name=f"partitions/restart-{count}",
            description=f"A restart with {count:,} partitions that have records",
            setup=ONE_NODE,
            prepare=partial(prepare, count),
            drive=restart,
            warm_up=0,
            main=count <= 1_000,
            series=("partitions at a restart", float(count)),
        ),
    )
)
