"""The cluster with its brokers in threads; tests/conformance/testing has it with processes and clients."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from odradek.testing import Cluster
from odradek.testing.cluster.cluster_broker import ClusterBroker
from odradek.testing.errors import BrokerStopped, WaitTimedOut
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from odradek.testing.cluster.cluster_questions import ClusterView
    from odradek.testing.node.settings import SettingValue

BROKERS = {0, 1, 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, own_process=False, replica_lag_time_max_ms=1000, replica_fetch_wait_max_ms=100) as cluster:
        _create(cluster, "t")
        yield cluster


def _create(cluster: Cluster, topic: str, replicas: set[int] = BROKERS) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, len(replicas))])[topic].result(20)
    cluster.wait_for_in_sync_replicas(topic, replicas=replicas)


def test_brokers_know_each_other(cluster: Cluster) -> None:
    assert set(cluster.brokers) == BROKERS
    assert cluster.controller in BROKERS
    assert len(cluster.bootstrap_servers.split(",")) == 3
    assert {broker.state for broker in cluster.brokers.values()} == {"running"}
    assert repr(cluster.brokers[0]) == "<broker 0, running>"


@pytest.mark.parametrize("to", sorted(BROKERS))
def test_leaders_move(cluster: Cluster, to: int) -> None:
    cluster.move_leader("t", to=to)
    assert cluster.leader("t") == to


def test_leaders_that_cannot_be(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="broker 7 is not a replica of t-0"):
        cluster.move_leader("t", to=7)
    with pytest.raises(ValueError, match="none-0 does not exist"):
        cluster.move_leader("none", to=0)


def test_a_broker_stops_and_comes_back_on_its_port(cluster: Cluster) -> None:
    controller = cluster.controller
    address = cluster.brokers[controller].bootstrap_servers
    cluster.stop_broker(controller)
    assert cluster.controller != controller
    assert address not in cluster.bootstrap_servers
    assert cluster.brokers[controller].state == "stopped"
    assert cluster.start_broker(controller).bootstrap_servers == address
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_a_follower_that_is_cut_off_leaves_the_isr_and_comes_back(cluster: Cluster) -> None:
    controller = cluster.controller
    cluster.move_leader("t", to=controller)
    (alone, *_) = sorted(BROKERS - {controller})
    cluster.partition([alone], BROKERS - {alone})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "1"})
    producer.produce("t", b"a follower without this record is out of sync")
    assert producer.flush(10) == 0
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS - {alone})
    assert cluster.in_sync_replicas("t") == BROKERS - {alone}
    cluster.heal()
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_a_cluster_that_is_cut_settles_on_the_side_of_the_controller(cluster: Cluster) -> None:
    """The other side hears of nothing: it is not waited for."""
    controller = cluster.controller
    stopped, alone = sorted(BROKERS - {controller})
    cluster.partition([alone], BROKERS - {alone})
    cluster.stop_broker(stopped)
    assert _known(cluster, controller) == {controller, alone}
    assert _known(cluster, alone) == BROKERS
    assert cluster.wait_for_leader("t", other_than=stopped) != stopped
    cluster.start_broker(stopped)
    assert _known(cluster, stopped) == BROKERS
    cluster.heal()
    cluster.wait_until_settled()
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_a_broker_without_the_metadata_service_is_not_waited_for(cluster: Cluster) -> None:
    controller = cluster.controller
    stopped, alone = sorted(BROKERS - {controller})
    cluster.partition([alone], BROKERS - {alone}, without_zookeeper=[alone])
    cluster.stop_broker(stopped)
    assert stopped not in _known(cluster, controller)
    assert _known(cluster, alone) == BROKERS
    cluster.start_broker(stopped)
    cluster.heal()
    cluster.wait_until_settled()
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_a_cluster_has_settled_when_the_requests_of_the_controller_are_answered(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a broker that was cut off would seem to know all, and then get the news of that time."""
    controller = cluster.controller
    (alone, *others) = sorted(BROKERS - {controller})
    cluster.partition([alone], BROKERS - {alone})
    cluster.restart(others[0])  # in the end `alone` knows as many brokers as in the beginning
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)  # `alone` has all records, and stays in sync

    def is_delivered(timeout_s: float) -> object:
        return cluster.brokers[controller].ask("wait_for_delivery", brokers=(alone,), timeout_s=timeout_s)

    assert _known(cluster, alone) == BROKERS
    assert not is_delivered(0.01)
    cluster.heal()
    cluster.wait_until_settled()
    assert is_delivered(0)
    assert cluster.brokers[alone].ask("wait_for_delivery", brokers=(alone,), timeout_s=0) is True, "no controller"

    def held(broker: ClusterBroker, name: str, **arguments: object) -> object:
        return False if name == "wait_for_delivery" else ask(broker, name, **arguments)

    ask = ClusterBroker.ask
    monkeypatch.setattr(ClusterBroker, "ask", held)
    with pytest.raises(WaitTimedOut, match=f"broker {controller}, the controller, waits for"):
        cluster.wait_until_settled()
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_the_side_of_the_controller_is_asked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is larger, and knows an older state, or none."""
    controller = cluster.controller
    cluster.move_leader("t", to=controller)
    asked: set[int] = set()
    ask = ClusterBroker.ask

    def recorded(broker: ClusterBroker, name: str, **arguments: object) -> object:
        if name != "hold_links":
            asked.add(broker.id)
        return ask(broker, name, **arguments)

    monkeypatch.setattr(ClusterBroker, "ask", recorded)
    cluster.partition([controller], BROKERS - {controller})
    assert cluster.controller == controller
    assert cluster.leader("t") == controller
    assert controller in cluster.in_sync_replicas("t")
    assert asked == {controller}
    cluster.heal()
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_brokers_that_are_not_there_cannot_be_cut_off(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"\[7, 8\] are not brokers of the cluster, which has \[0, 1, 2\]"):
        cluster.partition([0, 7], [1], without_zookeeper=[8])


def _known(cluster: Cluster, broker_id: int) -> set[int]:
    return set(cast("ClusterView", cluster.brokers[broker_id].ask("cluster_view")).brokers)


def test_brokers_are_cut_off_on_the_listener_that_they_have_for_one_another() -> None:
    config: dict[str, SettingValue] = {
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "replica.lag.time.max.ms": 1000,
        "replica.fetch.wait.max.ms": 100,
    }
    with Cluster(2, config, own_process=False) as cluster:
        _create(cluster, "t", {0, 1})
        controller = cluster.controller
        cluster.move_leader("t", to=controller)
        cluster.partition([0], [1])
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "1"})
        producer.produce("t", b"the other one does not get this record")
        assert producer.flush(10) == 0
        cluster.wait_for_in_sync_replicas("t", replicas={controller})


@pytest.mark.parametrize("end", [Cluster.resume, Cluster.stop_broker])
def test_a_paused_broker_goes_on_in_the_network_of_that_time(
    end: Callable[[Cluster, int], None], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[object, ...]] = []
    ask = ClusterBroker.ask

    def recorded(broker: ClusterBroker, name: str, **arguments: object) -> object:
        if name == "hold_links" and broker.id == 0:
            held.append(cast("tuple[object, ...]", arguments["ports"]))
        return ask(broker, name, **arguments)

    monkeypatch.setattr(ClusterBroker, "ask", recorded)
    monkeypatch.setattr(ClusterBroker, "_signal", lambda *_: None)
    cluster.partition([0], [1, 2])
    cluster.pause(0)
    cluster.heal()
    assert len(held[-1]) == 2, "a paused broker answers nothing"
    end(cluster, 0)
    assert held[-1] == ()
    if end is Cluster.stop_broker:
        cluster.start_broker(0)
    cluster.wait_for_in_sync_replicas("t", replicas=BROKERS)


def test_a_broker_whose_session_is_lost_registers_again(cluster: Cluster) -> None:
    client = KazooClient(cluster.zookeeper.address)
    client.start()
    registered = client.exists("/brokers/ids/0").czxid
    cluster.expire_session(0)
    again = eventually(
        lambda: client.exists("/brokers/ids/0"), accept=lambda stat: stat is not None and stat.czxid > registered
    )
    assert again.ephemeralOwner != 0
    client.stop()
    client.close()
    cluster.wait_until_settled()


def test_the_metadata_service_restarts_under_the_brokers(cluster: Cluster) -> None:
    controller = cluster.controller
    cluster.zookeeper.stop()
    cluster.zookeeper.start()
    _create(cluster, "after")
    assert cluster.controller == controller


def test_waits_say_what_is_there_instead(cluster: Cluster) -> None:
    with pytest.raises(WaitTimedOut, match=r"does not know the replicas \(7,\) of t-0 in sync after 0.01 s; it knows"):
        cluster.wait_for_in_sync_replicas("t", replicas=[7], timeout_s=0.01)
    with pytest.raises(WaitTimedOut, match="a leader of t-0"):
        cluster.wait_for_leader("t", leader=7, timeout_s=0.01)
    with pytest.raises(WaitTimedOut, match="a leader of none-0 that is any after"):
        cluster.wait_for_leader("none", timeout_s=0.01)


def test_any_leader_is_waited_for(cluster: Cluster) -> None:
    with ThreadPoolExecutor(1) as waiter:
        leader = waiter.submit(cluster.wait_for_leader, "later")
        _create(cluster, "later")
        assert leader.result(30) in BROKERS


def test_threads_can_neither_be_killed_nor_paused(cluster: Cluster) -> None:
    for action in (cluster.kill, cluster.pause):
        with pytest.raises(RuntimeError, match="own_process"):
            action(0)
    cluster.resume(0)


def test_a_broker_is_added() -> None:
    with Cluster(1, own_process=False) as cluster:
        assert cluster.add_broker().id == 1
        assert len(cluster.bootstrap_servers.split(",")) == 2
        cluster.stop_broker(1)
        with pytest.raises(WaitTimedOut, match="a controller other than 0"):
            cluster.wait_for_controller(other_than=0, timeout_s=0.01)
        with pytest.raises(WaitTimedOut, match="a leader of none-0 that is any and not 0"):
            cluster.wait_for_leader("none", other_than=0, timeout_s=0.01)
        with pytest.raises(RuntimeError, match="started already"):
            cluster.start()
    cluster.stop()
    with pytest.raises(BrokerStopped):
        _ = cluster.controller
    with pytest.raises(BrokerStopped):
        _ = cluster.zookeeper
    with pytest.raises(ValueError, match="0 brokers"):
        Cluster(0)


def test_a_cluster_stops_also_when_a_broker_has_failed() -> None:
    threads = set(threading.enumerate())
    cluster = Cluster(2, own_process=False).start()
    failed = cluster.brokers[1]._node
    assert failed is not None
    failed.stop().result(30)  # the broker has failed, and the cluster does not know
    directory = cluster._directory
    assert directory is not None
    cluster.stop()
    assert not os.path.exists(directory.path)
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_broker_that_has_failed_is_started_again() -> None:
    with Cluster(2, own_process=False) as cluster:
        failed = cluster.brokers[1]._node
        assert failed is not None
        failed.stop().result(30)  # as above
        cluster.partition([0], [1])
        cluster.heal()
        assert cluster.restart(1).is_running


def test_all_of_a_cluster_is_stopped_when_a_part_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set(threading.enumerate())
    cluster = Cluster(2, own_process=False).start()
    directory = cluster._directory
    assert directory is not None
    node = cluster.brokers[1]._node
    assert node is not None
    stop = node.stop

    def fail() -> None:
        stop().result(30)
        raise OSError("the stop")

    monkeypatch.setattr(node, "stop", fail)
    with pytest.raises(OSError, match="the stop"):
        cluster.stop()
    assert not os.path.exists(directory.path)
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
        assert not thread.is_alive()
