"""A producer with idempotence loses nothing and writes nothing twice, whatever happens to the cluster meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from odradek.testing import Cluster, scenarios

TOPIC = "t"
LIMIT_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, default_replication_factor=3, min_insync_replicas=2) as started:
        yield started


class Load:
    """Numbers that are produced one after the other, and read back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sent = 0
        self._failed: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "log_level": 0,
            }
        )

    def send(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(TOPIC, b"%d" % self._sent, partition=0, on_delivery=self._delivered)
            self._sent += 1
            self._producer.poll(0.002)

    def flush(self) -> None:
        assert self._producer.flush(LIMIT_S) == 0

    def finish(self) -> None:
        """Everything is there once, in order."""
        self.flush()
        assert self._failed == []
        assert self._read() == [b"%d" % number for number in range(self._sent)]

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: object) -> None:
        if error is not None:
            self._failed.append(str(error))

    def _read(self) -> list[bytes]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
        )
        values: list[bytes] = []
        try:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
            end = time.monotonic() + LIMIT_S
            while len(values) < self._sent and time.monotonic() < end:
                values += [message.value() or b"" for message in consumer.consume(1_000, 0.5)]
        finally:
            consumer.close()
        return values


def test_nothing_is_lost_or_written_twice(cluster: Cluster) -> None:
    load = Load(cluster)
    load.send(10)
    load.flush()
    for scenario in (
        scenarios.leader_moves(cluster, TOPIC, times=5),
        scenarios.rolling_restart(cluster),
        scenarios.controller_loss(cluster),
        scenarios.network_partition(cluster, [0], [1, 2]),
    ):
        with scenario:
            while scenario.is_going_on:
                load.send(20)
            load.send(50)
        load.flush()
    load.finish()
