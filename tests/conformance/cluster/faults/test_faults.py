"""Brokers are killed, paused, cut off and lose their sessions under an acks=all load: nothing acknowledged is lost.

`tests/soak` does it two hundred times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.support.clusters.cluster import SESSION_TIMEOUT_S, SETTLE_TIMEOUT_S, Cluster, Kind
from tests.support.clusters.faulty_cluster import FaultyCluster
from tests.support.clusters.mixed_cluster import await_gone, begin_reassignment
from tests.support.disks.replica_files import await_identical
from tests.support.loads.clients import Confluent, Message
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

KILLS = 5
EXPIRIES = 5
CONTROLLERS_AT_WORK = (0, 1, 0)
WORK_PARTITIONS = 8
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


def test_the_controller_loses_its_session_at_work(cluster: Cluster, unique: Callable[[str], str]) -> None:
    """While one topic moves and another is deleted: its successor brings all of it to its end.

    A broker that both need sleeps until there is a successor. A partition that had moved by then might keep its old
    replica, and with Apache too: StopReplica goes only to brokers that are registered, and what a controller that
    resigns has not sent yet is not sent by anybody.
    """
    for controller in CONTROLLERS_AT_WORK:
        cluster.make_controller(controller)
        admin = cluster.admin()  # an older one would ask the controller that was
        moved = admin.create_assigned_topic(unique("moved"), [[0, 1]] * WORK_PARTITIONS)
        deleted = admin.create_topic(unique("deleted"), WORK_PARTITIONS, replicas=3)
        for topic in (moved, deleted):
            cluster.await_complete(topic)
        Confluent().produce(cluster.bootstrap, moved, [Message(key=None, value=b"moved along")] * 100)
        cluster.pause(2)
        try:
            begin_reassignment(cluster, {(moved, p): (1, 2) for p in range(WORK_PARTITIONS)})
            cluster.tree.client.create(f"/admin/delete_topics/{deleted}")
            cluster.tree.expire(controller)
            eventually(lambda: cluster.tree.controller() is not None and cluster.tree.broker_ids() >= {0, 1})
        finally:
            cluster.resume(2)
        cluster.await_complete(moved)
        assert {state.replicas for state in cluster.tree.partitions(moved).values()} == {(1, 2)}
        await_gone(cluster, deleted)
        await_gone(cluster, moved, [0])
        # The node of the deletion is the last one that a controller removes.
        eventually(lambda: not cluster.tree.children("/admin/delete_topics"), timeout_s=SETTLE_TIMEOUT_S)
        assert deleted not in cluster.tree.topics()
        await_identical(cluster, moved)
        cluster.await_controller()
