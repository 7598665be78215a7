"""Brokers of both kinds that replicate over TLS and demand certificates of each other, also on the control plane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.conformance.security.conftest import Certificates
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.ports import free_port

pytestmark = pytest.mark.oracle

KINDS: dict[int, Kind] = {0: "odradek", 1: "apache", 2: "odradek"}
PROTOCOLS = "PLAINTEXT:PLAINTEXT,BROKERS:SSL,CONTROL:SSL"
COUNT = 200


def settings_of_a_listener(certificates: Certificates) -> dict[str, str]:
    return certificates.broker_settings(
        **{
            "listener.security.protocol.map": PROTOCOLS,
            "inter.broker.listener.name": "BROKERS",
            "control.plane.listener.name": "CONTROL",
            "offsets.topic.replication.factor": "1",
        }
    )


def listeners(broker_id: int) -> dict[str, str]:
    secured = f"BROKERS://127.0.0.1:{free_port()},CONTROL://127.0.0.1:{free_port()}"
    return {"listeners": "PLAINTEXT://127.0.0.1:{port}," + secured}


@pytest.fixture
def cluster(zookeeper: ZooKeeper, certificates: Certificates, tmp_path: Path, target: Kind) -> Iterator[Cluster]:
    kinds = KINDS if target == "odradek" else dict.fromkeys(KINDS, target)
    cluster = Cluster(tmp_path, zookeeper, kinds, settings_of_a_listener(certificates), own_settings=listeners)
    cluster.start()
    yield cluster
    cluster.close()


def test_brokers_of_both_kinds_replicate_over_tls(cluster: Cluster) -> None:
    topic = cluster.admin().create_assigned_topic(
        "replicated", [(0, 1, 2), (1, 2, 0), (2, 0, 1)], {"min.insync.replicas": "3"}
    )
    cluster.await_complete(topic)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": "true"}
    )
    delivered: list[object] = []
    for number in range(COUNT):
        producer.produce(
            topic, b"%d" % number * 500, partition=number % 3, on_delivery=lambda error, _: delivered.append(error)
        )
    assert producer.flush(30) == 0
    assert delivered == [None] * COUNT
    for partition, state in cluster.tree.partitions(topic).items():
        assert set(state.isr) == set(KINDS), partition
