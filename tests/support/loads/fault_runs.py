"""One piece of work of a client while its broker fails on command, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from odradek.protocol.api import ApiKey
from odradek.testing import Broker
from tests.support.loads.faulted_clients import PATIENT_MS, FaultedClient
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

TOPIC = "t"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one client did."""

    answer: str
    records: int
    changed: int


Outcome = tuple[Seen, float, list[tuple[str, str, int, str]]]
"""What a client did, how long that took, and the requests that were changed."""


def run(
    broker: Broker,
    client: FaultedClient,
    work: str,
    begin: Callable[[], object],
    *,
    is_topic_there: bool = True,
    request_timeout_ms: int = PATIENT_MS,
) -> Outcome:
    broker.reset()
    if is_topic_there:
        prepare(broker, with_record=work in ("fetch", "commit"))
    begin()
    started = time.monotonic()
    answer = client.run(work, broker.bootstrap_servers, TOPIC, request_timeout_ms)
    took_s = time.monotonic() - started
    record = broker.faults.record()
    records = len(broker.topic(TOPIC).records()) if TOPIC in broker.topics() else 0
    return Seen(answer=answer, records=records, changed=len(record.events)), took_s, record.sequence()


def prepare(broker: Broker, *, with_record: bool) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with RawClient(host, int(port), "preparing") as client:
        forever = [{"name": "retention.ms", "value": "-1"}]  # the record is of long ago
        topics = [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": forever}]
        client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=10_000), 5)
        if with_record:
            data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(b"value")}]}]
            client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data), 9)
