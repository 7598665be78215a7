"""The leader and the ISR after a broker stops, and a follower with records that its leader never had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import confluent_kafka
import pytest

from tests.support.admin import Admin
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.disks.replica_files import await_identical, log_data
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.numbered_load import Load, check_complete
from tests.support.processes.apache.tools import Tools
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

DEATH_TIMEOUT_S = 20
# Followers that sleep stay in the ISR; whoever dies is noticed at once.
SETTINGS = {"zookeeper.session.timeout.ms": "30000", "replica.lag.time.max.ms": "30000"}


@pytest.fixture(scope="module")
def started(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target), SETTINGS)
    cluster.start()
    return cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """Each test finds all brokers running, and topics of earlier tests whole."""
    if missing := set(started.brokers) - started.running:
        started.start(*missing)
    return started


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return cluster.admin()


def produce(cluster: Cluster, topic: str, *values: bytes, acks: str = "all") -> None:
    """Each value in a batch of its own."""
    for value in values:
        Confluent().produce(cluster.bootstrap, topic, [Message(key=None, value=value)], acks=acks)


def values(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    return [received.value for received in Confluent().consume(cluster.bootstrap, topic, count)]


def placement(brokers: Sequence[int], start: int, shift: int, partitions: int) -> list[tuple[int, ...]]:
    """As AdminUtils places three replicas on three brokers, from one start and one shift on."""
    placed = []
    for partition in range(partitions):
        shift += partition > 0 and partition % 3 == 0
        first = (partition + start) % 3
        placed.append(tuple(brokers[i] for i in (first, *((first + 1 + (shift + j) % 2) % 3 for j in range(2)))))
    return placed


def test_topics_are_placed_by_rule(cluster: Cluster, admin: Admin) -> None:
    """Apache takes the brokers in the order of a hash map, so any order will do."""
    admin.create_topic("placed", 7, replicas=3)
    cluster.await_complete("placed")
    found = [state.replicas for _, state in sorted(cluster.tree.partitions("placed").items())]
    assert found in [
        placement(brokers, start, shift, 7)
        for brokers in permutations(range(3))
        for start in range(3)
        for shift in range(3)
    ]
    for state in cluster.tree.partitions("placed").values():
        assert (state.leader, state.isr, state.leader_epoch) == (state.replicas[0], state.replicas, 0)
    cluster.await_known("placed")


def test_a_broker_stops_under_load(cluster: Cluster, admin: Admin) -> None:
    """A controlled shutdown: its leaders are elsewhere before it goes, and nobody notices."""
    admin.create_assigned_topic("spread", [[1, 2, 0], [2, 0, 1], [0, 1, 2]], {"min.insync.replicas": "2"})
    cluster.await_complete("spread")
    load = Load(cluster.bootstrap, "spread", idempotent=True, pause_s=0.005, max_in_flight=1)
    try:
        eventually(lambda: load.total > 100)
        cluster.stop(0)
        states = cluster.tree.partitions("spread")
        before = load.total
        eventually(lambda: load.total > before + 100)
        cluster.start(0)
        cluster.await_complete("spread")
    finally:
        load.finish()
    assert [states[partition].leader for partition in range(3)] == [1, 2, 1]
    assert all(set(state.isr) == {1, 2} for state in states.values()), states
    check_complete(load, cluster.bootstrap)
    await_identical(cluster, "spread")


def test_the_assignment_decides_who_leads_next_and_not_the_isr(cluster: Cluster, admin: Admin) -> None:
    """Replicas 1, 0, 2 with 2, 0 in sync: the leader dies, and 0 leads."""
    admin.create_assigned_topic("ordered", [[1, 0, 2]])
    cluster.await_complete("ordered")
    cluster.stop(0)
    assert cluster.tree.partition("ordered").isr == (1, 2)
    cluster.start(0)
    cluster.await_complete("ordered")
    assert cluster.tree.partition("ordered").isr == (1, 2, 0)
    epoch = cluster.tree.partition("ordered").leader_epoch
    cluster.kill_noticed(1)
    state = eventually(
        lambda: cluster.tree.partition("ordered"), accept=lambda s: s.leader not in (1, -1), timeout_s=DEATH_TIMEOUT_S
    )
    assert (state.leader, state.isr) == (0, (2, 0))
    assert state.leader_epoch > epoch
    cluster.await_known("ordered")


def test_a_follower_gives_up_what_its_new_leader_never_had(cluster: Cluster, admin: Admin) -> None:
    """Followers that sleep miss what the leader takes with acks=1; it dies, they go on without it; it comes back."""
    admin.create_assigned_topic("diverging", [[1, 0, 2]])
    produce(cluster, "diverging", b"common 0", b"common 1")
    cluster.await_complete("diverging")
    cluster.make_controller(1)
    for follower in (0, 2):
        cluster.pause(follower)
    # What waits at the leader is answered with the first of them, and lies in the followers' sockets.
    produce_to(cluster, 1, "diverging", b"passed on", b"lost 3", b"lost 4", b"lost 5")
    cluster.kill_noticed(1)
    for follower in (0, 2):
        cluster.resume(follower)
    eventually(lambda: cluster.tree.partition("diverging").leader in (0, 2), timeout_s=DEATH_TIMEOUT_S)
    produce(cluster, "diverging", b"new 0", b"new 1")
    count = values(cluster, "diverging", 4)
    assert count[:2] == [b"common 0", b"common 1"]
    assert b"lost 5" in log_data(cluster.log_dir(1), "diverging", 0)
    cluster.start(1)
    await_identical(cluster, "diverging")
    assert b"lost 5" not in log_data(cluster.log_dir(1), "diverging", 0)
    data = log_data(cluster.log_dir(0), "diverging", 0)
    assert data.count(b"new") == 2


def produce_to(cluster: Cluster, broker_id: int, topic: str, *each: bytes) -> None:
    """With acks=1, and knowing of one broker only."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.address(broker_id), "acks": 1, "log_level": 0, "linger.ms": 0}
    )
    for value in each:
        producer.produce(topic, value, partition=0)
        assert producer.flush(10) == 0


def test_an_unclean_election_is_asked_for(cluster: Cluster, admin: Admin, tools: Tools) -> None:
    """Only the dead one was in sync: no leader, until an operator says that any will do. Then its log is the truth."""
    admin.create_assigned_topic("unclean", [[1, 2]])
    produce(cluster, "unclean", b"0")
    cluster.await_complete("unclean")
    cluster.stop(2)
    produce(cluster, "unclean", b"1", b"2")
    cluster.kill_noticed(1)
    state = eventually(
        lambda: cluster.tree.partition("unclean"), accept=lambda s: s.leader == -1, timeout_s=DEATH_TIMEOUT_S
    )
    assert state.isr == (1,), "the last one stays in the ISR"
    cluster.start(2)
    assert cluster.tree.partition("unclean").leader == -1
    lines = tools.run(
        "leader-election",
        "--bootstrap-server",
        cluster.bootstrap,
        "--election-type",
        "unclean",
        "--topic",
        "unclean",
        "--partition",
        "0",
    ).lines
    assert lines == ["Successfully completed leader election (UNCLEAN) for partitions unclean-0"]
    state = cluster.tree.partition("unclean")
    assert (state.leader, state.isr) == (2, (2,))
    produce(cluster, "unclean", b"other 1")
    cluster.start(1)
    await_identical(cluster, "unclean")
    assert values(cluster, "unclean", 2) == [b"0", b"other 1"]
    assert b"other 1" in log_data(cluster.log_dir(1), "unclean", 0)
