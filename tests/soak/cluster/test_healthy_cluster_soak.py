"""A cluster without faults: four producers, four consumers, twelve partitions, thirty minutes, and not one error.

ODRADEK_SOAK_MINUTES shortens the run.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters.cluster import Cluster, running_cluster
from tests.support.disks.replica_files import await_identical
from tests.support.loads.group_member import Member
from tests.support.loads.numbered_load import PARTITIONS, Load, check_complete
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.waiting import eventually

pytestmark = pytest.mark.soak

MINUTES = float(os.environ.get("ODRADEK_SOAK_MINUTES", "30"))
PAIRS = 4
PAUSE_S = 0.02
ERRORS = re.compile(r"^\[[^\]]*\] (?:ERROR|FATAL|WARN) .*$", re.MULTILINE)
LONGEST_SILENCE_S = 5


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    with running_cluster(Cluster(tmp_path, zookeeper, dict.fromkeys((0, 1, 2), "odradek"))) as cluster:
        yield cluster
    zookeeper.stop()


def test_nothing_happens(cluster: Cluster) -> None:
    admin = cluster.admin()
    topics = [
        admin.create_topic(f"load-{n}", PARTITIONS, {"min.insync.replicas": "2"}, replicas=3) for n in range(PAIRS)
    ]
    for topic in topics:
        cluster.await_complete(topic)
        cluster.await_known(topic)
    loads = [Load(cluster.bootstrap, topic, idempotent=n % 2 == 0, pause_s=PAUSE_S) for n, topic in enumerate(topics)]
    members = [Member(cluster.bootstrap, topic, [topic]) for topic in topics]
    for member in members:
        eventually(lambda member=member: len(member.owned) == PARTITIONS, timeout_s=60)  # type: ignore[misc]
    for load in loads:
        load.await_progress()
        load.silence_s = dict.fromkeys(load.silence_s, 0.0)
    starts = {broker_id: len(cluster.log_text(broker_id)) for broker_id in cluster.brokers}
    time.sleep(MINUTES * 60)
    written = {broker_id: cluster.log_text(broker_id)[start:] for broker_id, start in starts.items()}
    silence_s = max(s for load in loads for s in load.silence_s.values())
    for load, member in zip(loads, members, strict=True):
        load.finish()
        eventually(lambda load=load, member=member: len(member.values) >= load.total, timeout_s=60)  # type: ignore[misc]
        member.leave()
        assert member.errors == []
        assert len(member.assignments) == 1, "a rebalance that nobody asked for"
        check_complete(load, cluster.bootstrap)
    total = sum(load.total for load in loads)
    print(f"{MINUTES} minutes, {total} records, silent for {silence_s:.2f} s at most")
    await_identical(cluster, *topics)
    assert [line for text in written.values() for line in ERRORS.findall(text)] == []
    assert silence_s < LONGEST_SILENCE_S
