"""The planner's view of a cluster: its brokers and replicas, with the loads that were found in log directories."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from spark_jobs.balance.loads import ReplicaLoad
from spark_jobs.balance.options import RATE
from spark_jobs.balance.planner import Partition

if TYPE_CHECKING:
    from spark_jobs.common.cluster import Placement

Name = tuple[str, int]


def planned_partitions(
    placement: Placement, loads: Mapping[Name, ReplicaLoad], *, balance_by: str, topics: Collection[str] = ()
) -> list[Partition]:
    """The partitions of the cluster; what was in no directory, or moves already, is counted and stays.

    `topics`: only these; all if empty.
    """
    partitions = []
    for tp, replicas in sorted(placement.replicas.items()):
        if topics and tp.topic not in topics:
            continue
        load = loads.get((tp.topic, tp.partition))
        weight = 0
        if load is not None:
            weight = round(load.bytes_per_second) if balance_by == RATE else load.bytes
        partitions.append(
            Partition(
                topic=tp.topic,
                partition=tp.partition,
                replicas=tuple(replicas),
                load=weight,
                size=0 if load is None else load.bytes,
                is_fixed=load is None or tp in placement.reassigning,
            )
        )
    return partitions


def unknown_partitions(placement: Placement, loads: Collection[Name]) -> list[Name]:
    """Partitions in the directories that the cluster does not have: deleted topics, or old copies."""
    known = {(tp.topic, tp.partition) for tp in placement.replicas}
    return sorted(name for name in loads if name not in known)
