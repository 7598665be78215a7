"""Three brokers with more and more idle partitions of three replicas: what those cost who uses one partition.

Before, and beside the idle ones: the latency of one record at a time with acks=all to a topic of one partition, and
what the busiest broker uses of a core while nothing is asked of it. Then a broker is stopped and started again:
how long until it is in sync with all partitions. `ODRADEK_BENCH_PARTITIONS=1000,10000` says how many there are.

The client is a plain socket with one prepared frame. It pauses between two records, as who waits for each does.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.api import ApiKey
from tests.benchmarks.contenders import ADMIN_TIMEOUT_S, Contenders, frame_of
from tests.benchmarks.measure import Table, percentile, usage_of
from tests.support.apache import IN_EARNEST
from tests.support.cluster import Cluster, Kind, running_cluster
from tests.support.raw_client import RawClient
from tests.support.requests import batch, build

PARTITIONS: Final = tuple(map(int, os.environ.get("ODRADEK_BENCH_PARTITIONS", "1000,2000").split(",")))
PARTITIONS_PER_TOPIC: Final = 500
TOPIC: Final = "used"
PRODUCE_VERSION: Final = 9
METADATA_VERSION: Final = 9
WARM_UP: Final = 2_000
MEASURED: Final = 500
PAUSE_S: Final = 0.003
IDLE_S: Final = 15
SETTLE_S: Final = 10
"""Followers have the new partitions by then, and high watermarks are on the disk."""

SETTINGS: Final = {"replica.lag.time.max.ms": "30000", "num.replica.fetchers": "1"}


def run(contenders: Contenders) -> None:
    table = Table("Three brokers with idle partitions, one record at a time with acks=all to another one")
    kinds: tuple[Kind, ...] = ("odradek", "apache")
    figures = {kind: _figures(contenders, kind) for kind in kinds}
    for name, unit in figures["odradek"]:
        table.row(name, unit, figures["odradek"][name, unit], figures["apache"][name, unit])


def _figures(contenders: Contenders, kind: Kind) -> dict[tuple[str, str], float]:
    kinds = dict.fromkeys((0, 1, 2), kind)
    cluster = Cluster(contenders.directory / f"idle-{kind}", contenders.zookeeper, kinds, SETTINGS, jvm=IN_EARNEST)
    found: dict[tuple[str, str], float] = {}
    with running_cluster(cluster):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        _create(admin, TOPIC, 1)
        topics: list[str] = []
        for partitions in (0, *PARTITIONS):
            while len(topics) * PARTITIONS_PER_TOPIC < partitions:
                topics.append(f"idle-{len(topics)}")
                _create(admin, topics[-1], PARTITIONS_PER_TOPIC)
            time.sleep(SETTLE_S)
            _latencies(cluster, WARM_UP, pause_s=0)  # one of them was just started, with cold compilers
            latencies = _latencies(cluster, MEASURED, pause_s=PAUSE_S)
            found[f"{partitions:,} idle, latency p50", "ms"] = percentile(latencies, 0.5) * 1000
            found[f"{partitions:,} idle, latency p99", "ms"] = percentile(latencies, 0.99) * 1000
            found[f"{partitions:,} idle, the busiest broker", "% of a core"] = _idle_share(cluster) * 100
            found[f"{partitions:,} idle, restart until in sync", "s"] = _restart(cluster, [TOPIC, *topics])
    return found


def _create(admin: AdminClient, topic: str, partitions: int) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=3)
    admin.create_topics([new], request_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)


def _latencies(cluster: Cluster, count: int, *, pause_s: float) -> list[float]:
    """Seconds, sorted."""
    partition = {"index": 0, "records": batch(bytes(100))}
    topics = [{"name": TOPIC, "partition_data": [partition]}]
    frame = frame_of(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)
    latencies = []
    with socket.create_connection(("127.0.0.1", cluster.ports[_leader(cluster)])) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            started = time.perf_counter()
            client.sendall(frame)
            client.recv(65_536)
            latencies.append(time.perf_counter() - started)
            time.sleep(pause_s)
    return sorted(latencies)


def _leader(cluster: Cluster) -> int:
    with RawClient("127.0.0.1", cluster.ports[min(cluster.running)]) as client:
        answer = client.call(build(ApiKey.METADATA, topics=[{"name": TOPIC}]), METADATA_VERSION)
    leader: int = answer.topics[0].partitions[0].leader_id  # type: ignore[attr-defined]
    return leader


def _idle_share(cluster: Cluster) -> float:
    """What the busiest of the brokers uses of one core while nobody asks anything."""
    before = {broker_id: usage_of(broker.pid) for broker_id, broker in cluster.brokers.items()}
    time.sleep(IDLE_S)
    return max((usage_of(cluster.brokers[each].pid) - before[each]).total_s for each in before) / IDLE_S


def _restart(cluster: Cluster, topics: list[str]) -> float:
    """Seconds from the start of a broker until it is in the ISR of every partition."""
    broker_id = min(cluster.running - {cluster.await_controller()})
    cluster.stop(broker_id)
    started = time.perf_counter()
    cluster.start(broker_id)
    cluster.await_complete(*topics)
    return time.perf_counter() - started
