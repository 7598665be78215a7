"""The bank on a cluster whose brokers are killed: coordinators and leaders move, and the accounts balance."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.clusters.cluster import Cluster, Kind
from tests.support.loads.bank.bank import Bank

pytestmark = pytest.mark.oracle

KILLS = 2
SETTINGS = {"min.insync.replicas": "2", "zookeeper.session.timeout.ms": "3000"}


class Member:
    """Whichever broker of the cluster it takes next."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._victim = -1

    def kill(self) -> None:
        self._victim = self._rng.choice(sorted(self._cluster.running))
        self._cluster.kill(self._victim)

    def start(self) -> None:
        """Which takes until ZooKeeper has given the old session up: the others go on meanwhile."""
        self._cluster.start(self._victim)


def test_the_books_balance_when_brokers_are_killed(new_cluster: Callable[..., Cluster], target: Kind) -> None:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target), SETTINGS)
    cluster.start()
    rng = random.Random(3)
    bank = Bank(cluster, tellers=3, transfers=10, seed=3, replicas=3)
    try:
        bank.outlive(Member(cluster, rng), KILLS, rng)
        bank.check()
    finally:
        bank.close()
    assert bank.aborted
