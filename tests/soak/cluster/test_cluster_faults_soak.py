"""The faults of tests/conformance/cluster/faults/test_faults.py, often: kill -9, pauses, expired sessions, ZooKeeper
down; and clean stops.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices (not the scheduling of the machine). ODRADEK_SOAK_KILLS
shortens the run; the other counts follow it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters.cluster import Cluster, running_cluster
from tests.support.clusters.faulty_cluster import FaultyCluster
from tests.support.processes.apache.apache import ZooKeeper

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "200"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
STOPS = max(1, KILLS // 4)
ALL_AT_ONCE = max(1, KILLS // 4)
EXPIRIES = KILLS
SLEEPS = max(1, KILLS // 4)
SEVERAL = max(1, KILLS // 4)
SEVERAL_S = 3
ELECTIONS = 5
SLEEP_S = (5, 60)
ZOOKEEPER_STALL_S = 30
RESTART_LIMIT_S = 60
SETTINGS = {"log.segment.bytes": str(2 << 20)}  # a start after a kill scans the last segment, not hours of load
PAUSE_S = 0.02  # the load is read again in the end, and there are hours of it


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def faulty(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[FaultyCluster]:
    """Under load; in the end everything is checked."""
    print(f"seed {SEED}")
    with running_cluster(Cluster(tmp_path, zookeeper, dict.fromkeys((0, 1, 2), "odradek"), SETTINGS)) as cluster:
        faulty = FaultyCluster(cluster, "load", PAUSE_S)
        try:
            yield faulty
        finally:
            faulty.finish()
        faulty.check()


def test_kills(faulty: FaultyCluster) -> None:
    """Every fourth time the controller."""
    rng = random.Random(SEED)
    for number in range(KILLS):
        faulty.kill_once(rng, faulty.cluster.await_controller() if number % 4 == 0 else None)


def test_clean_stops(faulty: FaultyCluster) -> None:
    """Every other time the controller."""
    rng = random.Random(SEED)
    for number in range(STOPS):
        controller = faulty.cluster.await_controller()
        faulty.stop_once(controller if number % 2 == 0 else rng.choice(sorted(faulty.cluster.brokers)))


def test_all_at_once(faulty: FaultyCluster) -> None:
    for _ in range(ALL_AT_ONCE):
        faulty.kill_all(RESTART_LIMIT_S)


def test_expired_sessions(faulty: FaultyCluster) -> None:
    rng = random.Random(SEED)
    for _ in range(EXPIRIES):
        faulty.expire_once(rng)


def test_leaders_sleep(faulty: FaultyCluster) -> None:
    rng = random.Random(SEED)
    for _ in range(SLEEPS):
        faulty.sleep_once(faulty.leader(rng.randrange(3)), rng.uniform(*SLEEP_S))


def test_zookeeper_is_away(faulty: FaultyCluster, zookeeper: ZooKeeper) -> None:
    faulty.during(zookeeper.pause, zookeeper.resume, ZOOKEEPER_STALL_S)
    faulty.during(zookeeper.stop, zookeeper.start, ZOOKEEPER_STALL_S)


def test_several_at_a_time(faulty: FaultyCluster) -> None:
    """Two brokers killed, every session expired, a killed broker that comes back at once, elections in a row."""
    rng = random.Random(SEED)
    cluster = faulty.cluster

    def kill_two() -> None:
        killed = rng.sample(sorted(cluster.brokers), 2)
        cluster.kill(*killed)
        time.sleep(rng.uniform(0, SEVERAL_S))
        cluster.start(*killed)

    def expire_all() -> None:
        for broker_id in cluster.tree.broker_ids():
            cluster.tree.expire(broker_id)

    def kill_and_start() -> None:
        broker_id = rng.choice(sorted(cluster.brokers))
        cluster.kill(broker_id)
        cluster.start(broker_id)

    def elect_again_and_again() -> None:
        for _ in range(ELECTIONS):
            cluster.tree.delete_controller()
            time.sleep(rng.uniform(0, 0.3))

    for _ in range(SEVERAL):
        fault = rng.choice((kill_two, expire_all, kill_and_start, elect_again_and_again))
        print(fault.__name__)
        with faulty.disturbed(RESTART_LIMIT_S):
            fault()
        cluster.await_controller()
