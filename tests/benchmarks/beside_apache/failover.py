"""Three brokers, one of them the controller: one is stopped in order, or, with more and more partitions, killed.

Stopped: the longest that one of twelve partitions acknowledges nothing to an idempotent producer with acks=all.

Killed: from ZooKeeper's end of its session until every broker that is left names a living leader for each partition.
Before, every broker leads a third of them, as preferred leader.
"""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponseTopic
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, Contenders
from tests.benchmarks.measure import Table
from tests.support.apache import IN_EARNEST
from tests.support.clean_stops import ROLES, CleanStops
from tests.support.cluster import Cluster, Kind, running_cluster
from tests.support.raw_client import RawClient
from tests.support.requests import build

PARTITIONS: Final = (500, 1000, 2000, 4000)
PARTITIONS_PER_TOPIC: Final = 100
LOOK_PAUSE_S: Final = 0.02
STOPS: Final = 5

SETTINGS: Final = {"zookeeper.session.timeout.ms": "3000", "num.replica.fetchers": "1"}


def run(contenders: Contenders) -> None:
    table = Table("Failover of three brokers, from the end of the session until all leaders are known")
    kinds: tuple[Kind, ...] = ("odradek", "apache")
    figures = {kind: _figures(contenders, kind) for kind in kinds}
    for row in figures["odradek"]:
        table.row(row, "s", figures["odradek"][row], figures["apache"][row])
    stops = {kind: _silence_at_stops(contenders, kind) for kind in kinds}
    table = Table(f"The longest silence of a partition at {STOPS} stops in order of each role")
    for row in stops["odradek"]:
        table.row(row, "s", stops["odradek"][row], stops["apache"][row])


def _silence_at_stops(contenders: Contenders, kind: Kind) -> dict[str, float]:
    kinds = dict.fromkeys((0, 1, 2), kind)
    cluster = Cluster(contenders.directory / f"stops-{kind}", contenders.zookeeper, kinds, SETTINGS, jvm=IN_EARNEST)
    with running_cluster(cluster):
        stops = CleanStops(cluster, "stops")
        silence_s = {f"the {role} stops": max(stops.stop_one(role) for _ in range(STOPS)) for role in ROLES}
        stops.finish()
    return silence_s


def _figures(contenders: Contenders, kind: Kind) -> dict[str, float]:
    kinds = dict.fromkeys((0, 1, 2), kind)
    cluster = Cluster(contenders.directory / f"failover-{kind}", contenders.zookeeper, kinds, SETTINGS, jvm=IN_EARNEST)
    found: dict[str, float] = {}
    with running_cluster(cluster):
        topics = 0
        for partitions in PARTITIONS:
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
            while topics * PARTITIONS_PER_TOPIC < partitions:
                _create(admin, f"failover-{topics}")
                topics += 1
            _await_leaders(cluster, partitions)
            for name in ("broker", "controller"):
                controller = cluster.await_controller()
                victim = controller if name == "controller" else min(cluster.running - {controller})
                _elect_preferred(cluster, controller)
                found[f"{partitions:,} partitions, a {name} dies"] = _fail_over(cluster, victim, partitions)
                cluster.start(victim)
                cluster.await_complete(*[f"failover-{topic}" for topic in range(topics)])
    return found


def _create(admin: AdminClient, topic: str) -> None:
    new = NewTopic(topic, num_partitions=PARTITIONS_PER_TOPIC, replication_factor=3)
    admin.create_topics([new], request_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)


def _elect_preferred(cluster: Cluster, controller: int) -> None:
    with RawClient("127.0.0.1", cluster.ports[controller], timeout_s=ADMIN_TIMEOUT_S) as client:
        answer = client.call(build(ApiKey.ELECT_LEADERS, timeout_ms=ADMIN_TIMEOUT_S * 1000), 2)
        assert answer.error_code == ErrorCode.NONE, answer  # type: ignore[attr-defined]


def _fail_over(cluster: Cluster, victim: int, partitions: int) -> float:
    """Seconds."""
    cluster.kill(victim)
    while victim in cluster.tree.broker_ids():
        time.sleep(0.005)
    started = time.perf_counter()
    _await_leaders(cluster, partitions)
    return time.perf_counter() - started


def _await_leaders(cluster: Cluster, partitions: int) -> None:
    """Topic by topic: an answer about all of them costs a broker of either kind more than the failover."""
    for broker_id in cluster.running:
        with RawClient("127.0.0.1", cluster.ports[broker_id]) as client:
            for topic in range(partitions // PARTITIONS_PER_TOPIC):
                request = build(ApiKey.METADATA, topics=[{"name": f"failover-{topic}"}])
                while not all(_is_led(cluster, topic) for topic in client.call(request, 9).topics):  # type: ignore[attr-defined]
                    time.sleep(LOOK_PAUSE_S)


def _is_led(cluster: Cluster, topic: MetadataResponseTopic) -> bool:
    leaders = [partition.leader_id for partition in topic.partitions]
    return len(leaders) == PARTITIONS_PER_TOPIC and set(leaders) <= cluster.running
