"""Three Apache Kafka 3.9 brokers with `odradek zookeeper` in the place of their ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster, Kind
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper, running_zookeeper
from tests.support.waiting import eventually

BROKERS = (0, 1, 2)
RECORDS = 100


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(service: OdradekZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kind: Kind = "apache"
    made = Cluster(tmp_path_factory.mktemp("apache"), service, dict.fromkeys(BROKERS, kind))  # type: ignore[arg-type]
    try:
        made.start()
        yield made
    finally:
        made.close()


def _produce_and_consume(cluster: Cluster, topic: str) -> None:
    cluster.await_known(topic)
    client = Confluent()
    sent = [Message(key=b"%d" % number, value=topic.encode()) for number in range(RECORDS)]
    client.produce(cluster.bootstrap, topic, sent)
    received = client.consume(cluster.bootstrap, topic, RECORDS)
    assert [record.key for record in received] == [message.key for message in sent]


def test_topics_failover_and_a_restart_of_the_service(cluster: Cluster, service: OdradekZooKeeper) -> None:
    cluster.admin().create_topic("first", partitions=3, replicas=3)
    _produce_and_consume(cluster, "first")

    old = cluster.await_controller()
    cluster.kill(old)
    new = cluster.await_controller(among=set(BROKERS) - {old})
    assert new != old
    cluster.admin().create_topic("second", partitions=3, replicas=2)
    _produce_and_consume(cluster, "second")

    registrations = {broker: cluster.tree.broker_epoch(broker) for broker in cluster.running}
    service.stop()
    service.start()
    assert cluster.await_controller() == new, "its session has outlived the restart, so it is still the controller"
    assert {broker: cluster.tree.broker_epoch(broker) for broker in cluster.running} == registrations
    cluster.admin().create_topic("third", partitions=3, replicas=2)
    _produce_and_consume(cluster, "third")

    cluster.start(old)
    eventually(
        lambda: cluster.metadata(new).brokers, accept=lambda seen: seen == set(BROKERS), timeout_s=SETTLE_TIMEOUT_S
    )
    cluster.await_complete("first")
