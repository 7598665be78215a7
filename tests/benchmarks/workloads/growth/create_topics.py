"""One topic of a thousand partitions, and two hundred topics in one request: until Metadata shows all leaders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.protocol.api import ApiKey
from tests.benchmarks.comparison.costs import cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, create_topic, delete_topics
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PARTITIONS: Final = 1000
TOPICS: Final = 200


def one_topic(side: Side, name: str) -> list[str]:
    create_topic(side.broker, name, side.amount(PARTITIONS))
    return [name]


def many_topics(side: Side, name: str) -> list[str]:
    names = [f"{name}-{number}" for number in range(side.amount(TOPICS))]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    with RawClient(side.broker.host, side.broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        created = client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)
        assert not any(topic.error_code for topic in created.topics)  # type: ignore[attr-defined]
        wanted = build(ApiKey.METADATA, topics=[{"name": name} for name in names])
        while True:
            answers = client.call(wanted, 9).topics  # type: ignore[attr-defined]
            if all(answer.partitions and answer.partitions[0].leader_id >= 0 for answer in answers):
                return names


def drive(create: Callable[[Side, str], list[str]], side: Side) -> Figures:
    cost = cost_of(side, partial(create, side, side.new_topic("created")))
    figures = {
        ("usable after", "s"): cost.elapsed_s,
        ("processor time", "CPU s"): cost.usage.total_s,
        ("resident then", "MB"): side.resident_mb(),
    }
    delete_topics(side.broker, cost.returned)
    return figures


WORKLOADS: Final = (
    Workload(
        name="create_topics/one",
        description=f"A topic of {PARTITIONS:,} partitions is created, until Metadata shows a leader for each",
        setup=ONE_NODE,
        drive=partial(drive, one_topic),
        warm_up=1,
    ),
    Workload(
        name="create_topics/many",
        description=f"{TOPICS} topics of one partition are created by one request, until Metadata shows their leaders",
        setup=ONE_NODE,
        drive=partial(drive, many_topics),
        warm_up=1,
    ),
)
