from __future__ import annotations

from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.balance.loads import ReplicaLoad, largest_of_each
from spark_jobs.balance.partitions import planned_partitions, unknown_partitions
from spark_jobs.balance.planner import Partition
from spark_jobs.common.cluster import Placement


def load(topic: str, partition: int, size: int, broker_id: int = 0, seconds: int = 10) -> ReplicaLoad:
    return ReplicaLoad(
        broker_id=broker_id,
        topic=topic,
        partition=partition,
        bytes=size,
        uncompressed_bytes=2 * size,
        records=size // 10,
        first_ms=0,
        last_ms=seconds * 1_000,
        compressions=("lz4",),
    )


T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PLACEMENT = Placement(
    cluster_id="c",
    racks={0: None, 1: None},
    replicas={T0: (0, 1), T1: (1,), U0: (0,)},
    reassigning=frozenset([U0]),
)


def test_a_partition_has_the_load_of_its_most_complete_replica() -> None:
    loads = largest_of_each([load("t", 0, 90, 0), load("t", 0, 100, 1), load("u", 0, 50)])
    found = planned_partitions(PLACEMENT, loads, balance_by="bytes")
    assert found == [
        Partition(topic="t", partition=0, replicas=(0, 1), load=100, size=100),
        Partition(topic="t", partition=1, replicas=(1,), load=0, size=0, is_fixed=True),  # in no directory
        Partition(topic="u", partition=0, replicas=(0,), load=50, size=50, is_fixed=True),  # moves already
    ]


def test_rates_are_balanced_at_the_cost_of_bytes() -> None:
    [found] = planned_partitions(
        Placement(cluster_id=None, racks={}, replicas={T0: (0,)}, reassigning=frozenset()),
        {("t", 0): load("t", 0, 100)},
        balance_by="rate",
    )
    assert (found.load, found.size) == (10, 100)


def test_only_the_named_topics_count() -> None:
    loads = {("t", 0): load("t", 0, 100), ("u", 0): load("u", 0, 50)}
    found = planned_partitions(PLACEMENT, loads, balance_by="bytes", topics=["u"])
    assert [each.topic for each in found] == ["u"]


def test_what_the_cluster_does_not_have() -> None:
    assert unknown_partitions(PLACEMENT, [("t", 0), ("t", 2), ("gone", 0)]) == [("gone", 0), ("t", 2)]


def test_rates_are_over_the_time_of_the_records() -> None:
    one = load("t", 0, 100, seconds=4)
    assert (one.bytes_per_second, one.records_per_second) == (25.0, 2.5)
    assert load("t", 0, 100, seconds=0).bytes_per_second == 100.0
