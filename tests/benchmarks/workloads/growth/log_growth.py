"""How cost grows with a log: with its segments, 1 to 10,000, and with its size, 1 MB to 10 GB.

A fetch by offset and a lookup by time of a random place, and an append at the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.comparison.costs import cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, create_topic
from tests.benchmarks.measure import percentile
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

VALUE: Final = bytes(1_000)
BATCH_RECORDS: Final = 64
SEGMENTS: Final = (1, 10, 100, 1_000, 10_000)
MEGABYTES: Final = (1, 10, 100, 1_000, 10_000)
LOOKUPS: Final = 1_000
FIRST_MS: Final = 1_600_000_000_000
STEP_MS: Final = 1_000
"""Between two records."""
ONE_BATCH_BYTES: Final = 1_100
"""A segment of one record: the next one does not fit."""
SMALL_SEGMENTS: Final = {"segment.bytes": str(ONE_BATCH_BYTES), "segment.index.bytes": "1024"}
PRODUCE_VERSION, FETCH_VERSION, LIST_OFFSETS_VERSION = 9, 11, 7
UNDER_WAY: Final = 5


def batches(records: int, each: int) -> Iterator[bytes]:
    """So many records, in batches of `each`; the time of a record says its offset."""
    for first in range(0, records, each):
        numbers = range(first, min(records, first + each))
        yield bytes(build_batch([SimpleRecord(FIRST_MS + number * STEP_MS, None, VALUE) for number in numbers]))


def produce_request(topic: str, records: bytes) -> Request:
    data = [{"index": 0, "records": records}]
    return build(ApiKey.PRODUCE, acks=-1, timeout_ms=60_000, topic_data=[{"name": topic, "partition_data": data}])


def prepare(key: str, records: int, each: int, configs: Mapping[str, str], sides: Sequence[Side]) -> None:
    """A topic of one partition with so many records."""
    for side in sides:
        topic = side.new_topic("log")
        create_topic(side.broker, topic, 1, configs)
        with RawClient(side.broker.host, side.broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
            under_way = 0
            for records_of_batch in batches(records, each):
                client.send(produce_request(topic, records_of_batch), PRODUCE_VERSION)
                under_way += 1
                if under_way > UNDER_WAY:
                    client.receive_frame()
                    under_way -= 1
            for _ in range(under_way):
                client.receive_frame()
            end = list_offsets(client, topic, -1)
            assert end == records, f"{end} of {records} records are there"
        side.memo[key] = (topic, records)


def list_offsets(client: RawClient, topic: str, timestamp: int) -> int:
    partitions = [{"partition_index": 0, "timestamp": timestamp}]
    request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
    answer: Any = client.call(request, LIST_OFFSETS_VERSION)
    found = answer.topics[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, found
    return int(found.offset)


def by_time(client: RawClient, topic: str, offset: int) -> None:
    assert list_offsets(client, topic, FIRST_MS + offset * STEP_MS) == offset


def by_offset(client: RawClient, topic: str, offset: int) -> None:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}
    request = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    answer: Any = client.call(request, FETCH_VERSION)
    found = answer.responses[0].partitions[0]
    assert found.error_code == ErrorCode.NONE, found
    assert len(found.records) > len(VALUE)


def drive(key: str, side: Side) -> Figures:
    topic, records = side.memo[key]
    lookups = side.amount(LOOKUPS, at_least=50)
    offsets = [random.Random(number).randrange(records) for number in range(lookups)]
    figures: dict[tuple[str, str], float] = {}
    with RawClient(side.broker.host, side.broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        for name, look in (("fetch by offset", by_offset), ("offset by time", by_time)):
            cost = cost_of(side, partial(timed, look, client, topic, offsets))
            figures[f"{name}, p50", "ms"] = percentile(sorted(cost.returned), 0.5) * 1000
            figures[name, "CPU µs"] = cost.usage.total_s / lookups * 1e6
    return {**figures, ("resident then", "MB"): side.resident_mb()}


def timed(
    look: Callable[[RawClient, str, int], None], client: RawClient, topic: str, offsets: list[int]
) -> list[float]:
    """Seconds of each lookup, with the client's own work."""
    found = []
    for offset in offsets:
        started = time.perf_counter()
        look(client, topic, offset)
        found.append(time.perf_counter() - started)
    return found


def workload(kind: str, count: int, description: str, records: int, each: int, configs: Mapping[str, str]) -> Workload:
    key = f"{kind}-{count}"
    return Workload(
        name=f"log_growth/{key}",
        description=description,
        setup=ONE_NODE,
        prepare=partial(prepare, key, records, each, configs),
        drive=partial(drive, key),
        main=count <= 1_000,
        series=(kind, float(count)),
    )


WORKLOADS: Final = (
    *(
        workload(
            "segments", count, f"Random places of a log of {count:,} segments of a record", count, 1, SMALL_SEGMENTS
        )
        for count in SEGMENTS
    ),
    *(
        workload("MB", count, f"Random places of a log of {count:,} MB", count * 1_000, BATCH_RECORDS, {})
        for count in MEGABYTES
    ),
)
