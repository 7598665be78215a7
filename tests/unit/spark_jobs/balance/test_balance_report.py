from __future__ import annotations

from dataclasses import replace

from spark_jobs.balance.loads import HeavyKey, ReplicaLoad
from spark_jobs.balance.planner import Move, Partition, Plan
from spark_jobs.balance.report import broker_lines, key_lines, partition_lines, plan_lines

LOAD = ReplicaLoad(
    broker_id=0,
    topic="t",
    partition=0,
    bytes=2_048,
    uncompressed_bytes=6_144,
    records=100,
    first_ms=0,
    last_ms=2_000,
    compressions=("lz4",),
)


def test_brokers_have_the_sum_of_their_replicas() -> None:
    plain = replace(LOAD, partition=1, compressions=("none",), uncompressed_bytes=2_000, first_ms=None, last_ms=None)
    assert broker_lines([LOAD, plain], [0, 1]) == [
        "broker  replicas     size  records   size/s  records/s    compression",
        "     0         2  4.0 KiB      200  3.0 KiB        150  lz4+none 2.0x",
        "     1         0      0 B        0      0 B          0           none",
    ]


def test_partitions_are_those_of_their_largest_replica_and_the_largest_come_first() -> None:
    loads = [LOAD, replace(LOAD, broker_id=1, bytes=1_024), replace(LOAD, topic="u", bytes=4_096)]
    lines = partition_lines(loads)
    assert [line.split()[:4] for line in lines[1:]] == [["u-0", "0", "4.0", "KiB"], ["t-0", "0,1", "2.0", "KiB"]]
    many = [replace(LOAD, partition=number) for number in range(25)]
    assert len(partition_lines(many)) == 22
    assert partition_lines(many)[-1] == "... and 5 smaller partitions"


def test_heavy_keys() -> None:
    key = HeavyKey(topic="t", key=b"a", records=1_200, bytes=2_048, share=0.4101)
    assert key_lines([key, replace(key, key=None)]) == [
        't: 41.0 % of the bytes have the key "a" (1,200 records, 2.0 KiB)',
        "t: 41.0 % of the bytes have no key (1,200 records, 2.0 KiB)",
    ]


def test_a_plan_says_what_it_costs() -> None:
    partition = Partition(topic="t", partition=3, replicas=(0,), load=10, size=2_048)
    plan = Plan(moves=(Move(partition=partition, source=0, target=1),), before={0: 20, 1: 0}, after={0: 10, 1: 10})
    assert plan_lines(plan, unit="/s") == [
        "t-3: broker 0 to 1, 2.0 KiB",
        "broker  before   after",
        "     0  20 B/s  10 B/s",
        "     1   0 B/s  10 B/s",
        "imbalance before: the largest broker has 2.00 times the mean",
        "imbalance after: the largest broker has 1.00 times the mean",
        "cost: 1 move, 2.0 KiB to copy",
    ]
    assert plan_lines(Plan(moves=(), before={0: 5}, after={0: 5}), unit="")[-1] == (
        "no move is needed, or allowed, that would make it better"
    )
