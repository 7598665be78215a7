"""`odradek.testing.Cluster` with a process for each broker: killed, paused and cut off, seen by a client."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing import Cluster

BROKERS = {0, 1, 2}
RECORDS = 50


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, replica_lag_time_max_ms=2000) as cluster:
        yield cluster
        processes = [psutil.Process(broker._node.process_id) for broker in cluster.brokers.values()]  # type: ignore[union-attr]
    assert not [process for process in processes if process.is_running()]


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name).replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 3, config={"min.insync.replicas": "2"})])[name].result(20)
    cluster.wait_for_in_sync_replicas(name, replicas=BROKERS)
    return name


def _produce(cluster: Cluster, topic: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "enable.idempotence": True})
    errors: list[object] = []
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(30) == 0
    assert errors == []


def _consume(cluster: Cluster, topic: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [int(message.value()) for message in consumer.consume(count, 30)]
    consumer.close()
    return values


def test_a_killed_controller_loses_no_record(cluster: Cluster, topic: str) -> None:
    controller = cluster.controller
    cluster.move_leader(topic, to=controller)
    _produce(cluster, topic, 0)
    cluster.kill(controller)
    assert cluster.controller != controller
    assert cluster.leader(topic) != controller
    _produce(cluster, topic, RECORDS)
    cluster.start_broker(controller)
    cluster.wait_for_in_sync_replicas(topic, replicas=BROKERS)
    assert _consume(cluster, topic, 2 * RECORDS) == list(range(2 * RECORDS))


def test_a_paused_leader_is_replaced_when_its_session_times_out(cluster: Cluster, topic: str) -> None:
    paused = cluster.leader(topic)
    cluster.pause(paused)
    cluster.expire_session(paused)
    cluster.wait_for_brokers(BROKERS - {paused})
    assert cluster.leader(topic) != paused
    _produce(cluster, topic, 0)
    cluster.resume(paused)
    cluster.wait_for_brokers(BROKERS)
    cluster.wait_for_in_sync_replicas(topic, replicas=BROKERS)
    assert _consume(cluster, topic, RECORDS) == list(range(RECORDS))


def test_a_broker_that_is_paused_while_the_network_heals_reaches_the_others_again(cluster: Cluster, topic: str) -> None:
    (paused, *_) = sorted(BROKERS - {cluster.leader(topic)})  # a follower asks the leader
    cluster.partition([paused], BROKERS - {paused})
    cluster.pause(paused)
    cluster.heal()
    cluster.resume(paused)
    cluster.wait_for_brokers(BROKERS)
    _produce(cluster, topic, 0)
    cluster.wait_for_in_sync_replicas(topic, replicas=BROKERS)
    assert _consume(cluster, topic, RECORDS) == list(range(RECORDS))


def test_a_leader_that_is_cut_off_loses_its_leadership_and_nothing_that_was_acknowledged(
    cluster: Cluster, topic: str
) -> None:
    alone = cluster.leader(topic)
    others = BROKERS - {alone}
    cluster.partition([alone], others, without_zookeeper=[alone])
    cluster.expire_session(alone)
    cluster.wait_for_brokers(others)
    assert cluster.wait_for_leader(topic, other_than=alone) in others
    reachable = ",".join(cluster.brokers[broker].bootstrap_servers for broker in sorted(others))
    producer = Producer({"bootstrap.servers": reachable, "acks": "all"})
    producer.produce(topic, b"0")
    assert producer.flush(30) == 0
    cluster.heal()
    cluster.wait_for_brokers(BROKERS)
    cluster.wait_for_in_sync_replicas(topic, replicas=BROKERS)
    assert _consume(cluster, topic, 1) == [0]
