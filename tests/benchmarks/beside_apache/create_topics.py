"""One topic of a thousand partitions, and two hundred topics in one request."""

from __future__ import annotations

import time
from collections.abc import Callable

from odradek.protocol.api import ApiKey
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, Contender, Contenders, create_topic, delete_topic
from tests.benchmarks.measure import Table, resident_mb, usage_of
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PARTITIONS = 1000
TOPICS = 200


def run(contenders: Contenders) -> None:
    table = Table("CreateTopics, until Metadata shows a leader for each partition")
    with contenders.both("create") as (odradek, apache):
        for broker in (odradek, apache):
            create_topic(broker, "warm-up", 50)
            delete_topic(broker, "warm-up")
        for name, create in ((f"one topic of {PARTITIONS:,}", one_topic), (f"{TOPICS} topics of one", many_topics)):
            (our_s, our_cpu), (their_s, their_cpu) = timed(odradek, create), timed(apache, create)
            table.row(name, "s", our_s, their_s)
            table.row("  processor time", "CPU s", our_cpu, their_cpu)
        table.row("resident then", "MB", resident_mb(odradek.pid), resident_mb(apache.pid))


def timed(broker: Contender, create: Callable[[Contender], None]) -> tuple[float, float]:
    before, started = usage_of(broker.pid), time.perf_counter()
    create(broker)
    return time.perf_counter() - started, (usage_of(broker.pid) - before).total_s


def one_topic(broker: Contender) -> None:
    create_topic(broker, "wide", PARTITIONS)


def many_topics(broker: Contender) -> None:
    names = [f"narrow-{number}" for number in range(TOPICS)]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    with RawClient(broker.host, broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        created = client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)
        assert not any(topic.error_code for topic in created.topics)  # type: ignore[attr-defined]
        wanted = build(ApiKey.METADATA, topics=[{"name": name} for name in names])
        while True:
            answers = client.call(wanted, 9).topics  # type: ignore[attr-defined]
            if all(answer.partitions and answer.partitions[0].leader_id >= 0 for answer in answers):
                return
