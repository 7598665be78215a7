"""Brokers die, sleep, lose their sessions and each other under an acks=all load: nothing acknowledged is lost.

`tests/soak` does it two hundred times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster import SESSION_TIMEOUT_S, Cluster, Kind
from tests.support.faulty_cluster import FaultyCluster

pytestmark = pytest.mark.oracle

KILLS = 5
EXPIRIES = 5
RESTART_LIMIT_S = 40
SLEEP_S = SESSION_TIMEOUT_S + 2


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target))
    cluster.start()
    return cluster


@pytest.fixture
def faulty(cluster: Cluster, unique: Callable[[str], str]) -> Iterator[FaultyCluster]:
    """Under load; in the end everything is checked."""
    faulty = FaultyCluster(cluster, unique("load"))
    try:
        yield faulty
    finally:
        faulty.finish()
    faulty.check()


def test_kills(faulty: FaultyCluster) -> None:
    """kill -9, first of the controller, then of whichever."""
    rng = random.Random(5)
    faulty.kill_once(rng, faulty.cluster.tree.controller())
    for _ in range(KILLS - 1):
        faulty.kill_once(rng)


def test_all_at_once(faulty: FaultyCluster) -> None:
    faulty.kill_all(RESTART_LIMIT_S)


def test_expired_sessions(faulty: FaultyCluster) -> None:
    rng = random.Random(7)
    for _ in range(EXPIRIES):
        faulty.expire_once(rng)


def test_a_leader_sleeps(faulty: FaultyCluster) -> None:
    """Longer than its session: it wakes up as a leader that has been succeeded, and nobody believes it any more."""
    faulty.sleep_once(faulty.leader(), SLEEP_S)
