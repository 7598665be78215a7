"""A load on three partitions of a cluster, and a streaming query of Spark that reads it while brokers come and go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.support.clusters.cluster import Cluster
from tests.support.clusters.mixed_cluster import rotated
from tests.support.loads.numbered_load import PARTITIONS, Load, check_acknowledged
from tests.support.spark.pieces import kafka_stream
from tests.support.spark.stream import SparkStream, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_S = 0.03
TIMEOUT_MS = 15_000
TIMEOUTS = {"kafka.default.api.timeout.ms": str(TIMEOUT_MS), "kafka.request.timeout.ms": str(TIMEOUT_MS)}
"""The default of the first is a minute. For that time, Java's AdminClient waits for a broker that has died after it was
chosen for a lookup of offsets; then Spark begins the lookup again.
"""


class StreamedLoad:
    """An idempotent load with acks=all; each partition is led by another broker at first."""

    def __init__(self, spark: SparkSession, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self.topic = topic
        config = {"min.insync.replicas": "2"}
        cluster.admin().create_assigned_topic(topic, [rotated(p) for p in range(PARTITIONS)], config)
        cluster.await_complete(topic)
        cluster.await_known(topic)
        reader = kafka_stream(spark, cluster.bootstrap, subscribe=topic, startingOffsets="earliest", **TIMEOUTS)
        self._stream = SparkStream(reader)
        self._load = Load(cluster.bootstrap, topic, idempotent=True, pause_s=PAUSE_S, max_in_flight=1)

    def close(self) -> None:
        self._load.finish()
        with self._stream:
            pass

    def await_delivered(self) -> None:
        """Wait until each partition has acknowledged a record from now on, and the query has read it."""
        self._load.await_progress()
        goal = Counter({partition: len(numbers) for partition, numbers in self._load.acknowledged.items()})
        self._stream.until(self._stream.counts, accept=lambda counts: counts >= goal)

    def kill_once(self, victim: int) -> None:
        """kill -9 of a broker; records are read without it; it comes back, and they are read again."""
        self._cluster.kill(victim)
        self.await_delivered()
        self._cluster.start(victim)
        self._cluster.await_complete(self.topic)
        self.await_delivered()

    def check(self) -> None:
        """The load ends. The query has read every record once, at the offset that was acknowledged, in order."""
        self._load.finish()
        assert self._load.failed == []
        records = self._stream.records()
        for partition, sent in enumerate(self._load.sent):
            found = [record for record in records if record.partition == partition]
            assert places(found) == [(partition, offset) for offset in range(sent)], (
                "lost, twice, or more than was sent"
            )
            numbers = [int(record.value or b"-1") for record in found]
            assert numbers == list(range(sent)), f"{self.topic}-{partition}: a record is lost, repeated or out of order"
            check_acknowledged(self._load, partition, numbers)
