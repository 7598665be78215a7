"""Brokers in network namespaces whose packets get lost, one direction or both, under an acks=all load.

Brokers are cut from each other, or one from ZooKeeper. The cluster is Odradek's, or has one Apache Kafka broker. The
seed is printed; ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_PARTITIONS shortens the run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters.cluster import SESSION_TIMEOUT_S, Cluster, Kind, running_cluster
from tests.support.clusters.faulty_cluster import UNAVAILABLE_AT_MOST_S, FaultyCluster
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.namespaces import Network

pytestmark = pytest.mark.soak

PARTITIONS = int(os.environ.get("ODRADEK_SOAK_PARTITIONS", "100"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
BROKERS = ("0", "1", "2")
ZOOKEEPER = "zk"
CUT_S = (2, SESSION_TIMEOUT_S + 6)
PAUSE_S = 0.02
CLUSTERS: dict[str, tuple[Kind, Kind, Kind]] = {
    "odradek": ("odradek", "odradek", "odradek"),
    "mixed": ("odradek", "apache", "odradek"),
}


@pytest.fixture
def network() -> Iterator[Network]:
    with Network([*BROKERS, ZOOKEEPER]) as network:
        yield network


@pytest.mark.parametrize("kinds", CLUSTERS.values(), ids=CLUSTERS.keys())
def test_packets_get_lost(kinds: tuple[Kind, Kind, Kind], network: Network, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    zookeeper = ZooKeeper(tmp_path / "zookeeper", host=network.address(ZOOKEEPER), prefix=network.prefix(ZOOKEEPER))
    zookeeper.start()
    try:
        cluster = Cluster(tmp_path, zookeeper, dict(enumerate(kinds)), network=network)
        with running_cluster(cluster):
            faulty = FaultyCluster(cluster, "load", PAUSE_S)
            try:
                for _ in range(PARTITIONS):
                    part_once(faulty, network, rng)
            finally:
                faulty.finish()
            faulty.check()
    finally:
        zookeeper.stop()


def part_once(faulty: FaultyCluster, network: Network, rng: random.Random) -> None:
    """For a while, and no partition is silent for longer than that while and a little more."""
    one, other = rng.sample([*BROKERS, ZOOKEEPER], 2)
    cuts = rng.choice(([(one, other)], [(one, other), (other, one)]))
    cut_s = rng.uniform(*CUT_S)
    print(f"cut {cuts} for {cut_s:.1f} s, the controller is {faulty.cluster.tree.controller()}")
    faulty.during(lambda: [network.cut(*cut) for cut in cuts], network.heal, cut_s, cut_s + UNAVAILABLE_AT_MOST_S)
