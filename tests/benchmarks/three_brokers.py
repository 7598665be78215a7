"""Three brokers of one kind for a benchmark: their topics, preferred leaders, and a kill.

Odradek and Apache Kafka take turns: six brokers at a time would slow each other down.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, Contenders
from tests.benchmarks.measure import Table
from tests.support.clusters.cluster import Cluster, Kind, running_cluster
from tests.support.processes.apache.apache import IN_EARNEST
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

KINDS: Final[tuple[Kind, ...]] = ("odradek", "apache")
CHOSEN: Final = os.environ.get("ODRADEK_BENCH_KINDS", ",".join(KINDS)).split(",")
"""Ten thousand partitions take a cluster of Apache's brokers many minutes: one kind may be run alone."""

SETTINGS: Final = {"zookeeper.session.timeout.ms": "3000", "num.replica.fetchers": "1"}
METADATA_VERSION: Final = 9
LOOK_PAUSE_S: Final = 0.005
IN_SYNC_S: Final = 600
"""Enough for ten thousand partitions on a slow machine."""

Figures: TypeAlias = Mapping[tuple[str, str], float]
"""By name and unit."""


def compare(title: str, measure: Callable[[Kind], Figures]) -> dict[Kind, Figures]:
    """Measure one kind after the other, and print both."""
    figures = {kind: measure(kind) if kind in CHOSEN else {} for kind in KINDS}
    table = Table(title)
    for name, unit in figures["odradek"] or figures["apache"]:
        ours, theirs = (figures[kind].get((name, unit), 0.0) for kind in KINDS)
        table.row(name, unit, ours, theirs)
    return figures


@contextmanager
def three_brokers(
    contenders: Contenders, name: str, kind: Kind, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Brokers 0, 1 and 2, started."""
    cluster = Cluster(
        contenders.directory / f"{name}-{kind}",
        contenders.zookeeper,
        dict.fromkeys((0, 1, 2), kind),
        {**SETTINGS, **(settings or {})},
        jvm=IN_EARNEST,
    )
    with running_cluster(cluster):
        yield cluster


class Topics:
    """Topics of three replicas and equally many partitions, more and more of them."""

    def __init__(self, cluster: Cluster, prefix: str, partitions_each: int) -> None:
        self.names: list[str] = []
        self.partitions_each = partitions_each
        self._cluster = cluster
        self._prefix = prefix

    def grow_to(self, partitions: int) -> None:
        """Create topics until there are so many partitions, and wait until all their replicas are in sync."""
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
        new = []
        while (len(self.names) + len(new)) * self.partitions_each < partitions:
            new.append(f"{self._prefix}-{len(self.names) + len(new)}")
            topic = NewTopic(new[-1], num_partitions=self.partitions_each, replication_factor=3)
            admin.create_topics([topic], request_timeout=ADMIN_TIMEOUT_S)[new[-1]].result(ADMIN_TIMEOUT_S)
        self.names += new
        await_in_sync(self._cluster, new)


def await_in_sync(cluster: Cluster, topics: Sequence[str]) -> float:
    """Wait until every replica of these topics is in sync; the time of `time.perf_counter` at which a broker knew it.

    The tree is read when the broker says so, and not before: ten thousand nodes take seconds, which would be part of
    what is measured.
    """
    asked = build(ApiKey.METADATA, topics=[{"name": topic} for topic in topics], allow_auto_topic_creation=False)

    def known_in_sync(client: RawClient) -> bool:
        answer: Any = client.call(asked, METADATA_VERSION)
        return all(
            topic.error_code == ErrorCode.NONE
            and topic.partitions
            and all(
                partition.leader_id >= 0 and set(partition.isr_nodes) == set(partition.replica_nodes)
                for partition in topic.partitions
            )
            for topic in answer.topics
        )

    give_up_at = time.monotonic() + IN_SYNC_S
    with RawClient("127.0.0.1", cluster.ports[min(cluster.running)], timeout_s=IN_SYNC_S) as client:
        while True:
            eventually(lambda: known_in_sync(client), timeout_s=give_up_at - time.monotonic())
            known = time.perf_counter()
            if all(map(cluster.tree.is_complete, topics)):
                return known


def elect_preferred(cluster: Cluster) -> None:
    """Every partition of the cluster is led by its first replica again."""
    request = build(ApiKey.ELECT_LEADERS, topic_partitions=None, timeout_ms=ADMIN_TIMEOUT_S * 1000)
    with RawClient("127.0.0.1", cluster.ports[cluster.await_controller()], timeout_s=ADMIN_TIMEOUT_S) as client:
        answer = client.call(request, 2)
    assert set(error_codes(answer)) <= {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}, set(error_codes(answer))


def kill(cluster: Cluster, victim: int) -> float:
    """kill -9; the time of `time.perf_counter` at which ZooKeeper has ended the broker's session."""
    cluster.kill(victim)
    while victim in cluster.tree.broker_ids():
        time.sleep(LOOK_PAUSE_S)
    return time.perf_counter()


def names_led_by(leader: int, leaders: Mapping[int, int], partition_of: Callable[[str], int]) -> Iterator[str]:
    """Names of groups or transactions whose partition of the coordinators' topic that broker leads."""
    names = (f"bench-{number}" for number in itertools.count())
    return (name for name in names if leaders[partition_of(name)] == leader)
