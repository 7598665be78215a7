"""Brokers that cannot reach each other, or ZooKeeper, in one direction or in both, under an acks=all load.

Links between brokers are cut in the broker that sends the request (`cut_links.py` beside this file), those to ZooKeeper
in a proxy. `tests/soak` cuts real networks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from tests.conformance.cluster.faults.byte_proxy import ByteProxy
from tests.conformance.cluster.faults.cut_links import CuttableBroker
from tests.support.clusters.cluster import SESSION_TIMEOUT_S, Cluster
from tests.support.clusters.faulty_cluster import UNAVAILABLE_AT_MOST_S, FaultyCluster
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.waiting import eventually

BROKERS = (0, 1, 2)
APART_AT_MOST_S = 15
ZOOKEEPER_AWAY_S = SESSION_TIMEOUT_S + 2


class PartedCluster(FaultyCluster):
    """Brokers 0, 1 and 2 with everything between them, and between them and ZooKeeper, open to being cut."""

    def __init__(self, cluster: Cluster, topic_suffix: str, proxies: dict[int, ByteProxy]) -> None:
        super().__init__(cluster, topic_suffix)
        self.proxies = proxies

    def part(self, asking: int, asked: int, *, direction: str = "requests") -> None:
        """What `asking` asks of `asked` gets lost, or the answer does, until it has fallen behind."""
        broker = cast("CuttableBroker", self.cluster.brokers[asking])
        with self.disturbed(APART_AT_MOST_S + UNAVAILABLE_AT_MOST_S):
            broker.cut(**{direction: [self.cluster.ports[asked]]})
            self._await_out_of_sync(asking, asked)
            broker.cut()

    def part_pair(self, one: int, other: int) -> None:
        """Both ways, until `other` has fallen behind."""
        brokers = {n: cast("CuttableBroker", self.cluster.brokers[n]) for n in (one, other)}
        with self.disturbed(APART_AT_MOST_S + UNAVAILABLE_AT_MOST_S):
            brokers[one].cut(requests=[self.cluster.ports[other]])
            brokers[other].cut(requests=[self.cluster.ports[one]])
            self._await_out_of_sync(other, one)
            for broker in brokers.values():
                broker.cut()

    def _await_out_of_sync(self, follower: int, leader: int) -> None:
        def in_sync() -> list[str]:
            states = [state for topic in self.topics for state in self.cluster.tree.partitions(topic).values()]
            assert any(state.leader == leader for state in states)
            return [str(state) for state in states if state.leader == leader and follower in state.isr]

        eventually(in_sync, accept=lambda found: not found, timeout_s=APART_AT_MOST_S)

    def part_from_zookeeper(self, broker_id: int, *, forward: bool = True, backward: bool = True) -> None:
        """Until its session is over, and it is not the controller. One that ZooKeeper still hears keeps its session."""
        proxy, tree = self.proxies[broker_id], self.cluster.tree
        before = tree.broker_epoch(broker_id)

        def is_replaced() -> bool:
            return tree.broker_epoch(broker_id) != before and tree.controller() not in (broker_id, None)

        with self.disturbed():
            proxy.cut(forward=forward, backward=backward)
            try:
                if forward:
                    eventually(is_replaced, timeout_s=APART_AT_MOST_S)
                else:
                    time.sleep(ZOOKEEPER_AWAY_S)
            finally:
                proxy.heal()
        self.cluster.await_controller()

    def controller(self) -> int:
        return self.cluster.await_controller()

    def another_than(self, *ids: int) -> int:
        return min(set(BROKERS) - set(ids))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A ZooKeeper that may be stopped."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper-of-its-own"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def parted(
    tmp_path_factory: pytest.TempPathFactory, server: ZooKeeper, unique: Callable[[str], str]
) -> Iterator[PartedCluster]:
    """One load through all tests of this module; the last thing that happens is that all of it is checked."""
    proxies = {broker_id: ByteProxy(server.port) for broker_id in BROKERS}
    cluster = Cluster(
        tmp_path_factory.mktemp("parted"),
        server,
        dict.fromkeys(BROKERS, "odradek"),
        zookeeper_address=lambda broker_id: proxies[broker_id].address,
        odradek=CuttableBroker,
    )
    try:
        cluster.start()
        parted = PartedCluster(cluster, unique("load"), proxies)
        try:
            yield parted
        finally:
            parted.finish()
        parted.check()
    finally:
        cluster.close()
        for proxy in proxies.values():
            proxy.close()


def test_a_follower_cannot_ask_its_leader(parted: PartedCluster) -> None:
    leader = parted.leader()
    parted.part(parted.another_than(leader), leader)


def test_a_follower_does_not_hear_its_leader(parted: PartedCluster) -> None:
    leader = parted.leader()
    parted.part(parted.another_than(leader), leader, direction="answers")


def test_the_controller_and_a_broker(parted: PartedCluster) -> None:
    controller = parted.controller()
    parted.part_pair(controller, parted.another_than(controller))


def test_two_brokers_of_which_none_is_the_controller(parted: PartedCluster) -> None:
    one = parted.another_than(parted.controller())
    parted.part_pair(one, parted.another_than(parted.controller(), one))


def test_the_controller_and_zookeeper(parted: PartedCluster) -> None:
    """It is succeeded, and believed by nobody when it comes back."""
    controller = parted.controller()
    parted.part_from_zookeeper(controller)
    assert parted.controller() != controller


def test_a_broker_does_not_hear_zookeeper(parted: PartedCluster) -> None:
    parted.part_from_zookeeper(parted.another_than(parted.controller()), forward=False)


def test_zookeeper_does_not_hear_a_broker(parted: PartedCluster) -> None:
    parted.part_from_zookeeper(parted.another_than(parted.controller()), backward=False)


def test_zookeeper_stalls(parted: PartedCluster, server: ZooKeeper) -> None:
    """Longer than every session: the brokers go on with what they lead, and join again."""
    parted.during(server.pause, server.resume, ZOOKEEPER_AWAY_S)


def test_zookeeper_is_restarted(parted: PartedCluster, server: ZooKeeper) -> None:
    parted.during(server.stop, server.start, 1)
