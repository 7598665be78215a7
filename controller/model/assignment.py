"""Assigns the replicas of new partitions to brokers.

Without racks, the brokers form a circle, sorted by id. The first replicas of the partitions are assigned round the
circle from `start_index`. The other replicas follow at a distance that grows by one after each full round, so that the
followers of one broker's partitions are spread over all other brokers. Five brokers, three replicas, both start values
0:

    p0 0 1 2    p1 1 2 3    p2 2 3 4    p3 3 4 0    p4 4 0 1
    p5 0 2 3    p6 1 3 4    p7 2 4 0    p8 3 0 1    p9 4 1 2

With racks, the circle takes one broker from each rack in turn. A broker is skipped while its rack has a replica and
another rack has none, or while it has a replica itself and another broker has none.

The caller passes the source of the two random start values. When partitions are added to a topic, both are fixed, so
that the new partitions continue the pattern.

Kafka: AdminUtils.assignReplicasToBrokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from odradek.controller.model.broker_info import Broker
from odradek.protocol.errors import ErrorCode, KafkaError

BROKER_DEFAULT: Final = -1
"""As the number of partitions or replicas in CreateTopics: the broker's default, or the number in the assignments."""

RandomBelow: TypeAlias = Callable[[int], int]
"""A random number of at least 0 and less than the argument."""


def assign_replicas(
    brokers: Sequence[Broker],
    num_partitions: int,
    replication_factor: int,
    random_below: RandomBelow,
    *,
    fixed_start_index: int | None = None,
    start_partition_id: int = 0,
) -> dict[int, tuple[int, ...]]:
    """The replicas of each new partition, the preferred leader first. Raises KafkaError for bad numbers or racks."""
    if num_partitions <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.",
        )
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    circle = rack_alternated(racks) if racks else sorted(broker.id for broker in brokers)
    start_index = random_below(len(circle)) if fixed_start_index is None else fixed_start_index
    shift = random_below(len(circle)) if fixed_start_index is None else fixed_start_index
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in range(start_partition_id, start_partition_id + num_partitions):
        if partition > 0 and partition % len(circle) == 0:
            shift += 1
        first = (partition + start_index) % len(circle)
        if racks:
            assignment[partition] = _rack_aware(circle, racks, first, shift, replication_factor)
        else:
            followers = [circle[_replica_index(first, shift, j, len(circle))] for j in range(replication_factor - 1)]
            assignment[partition] = (circle[first], *followers)
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers, one from each rack in turn; racks sorted by name, brokers by id.

    Kafka: AdminUtils.getRackAlternatedBrokerList.
    """
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    waiting = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, waiting), default=0)
    return [rack[turn] for turn in range(longest) for rack in waiting if turn < len(rack)]


def _rack_aware(
    circle: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    number_of_racks = len(set(racks.values()))
    replicas = [circle[first]]
    used_racks = {racks[circle[first]]}
    candidate = 0
    while len(replicas) < replication_factor:
        broker_id = circle[_replica_index(first, shift * number_of_racks, candidate, len(circle))]
        candidate += 1
        is_rack_free = racks[broker_id] not in used_racks or len(used_racks) == number_of_racks
        if is_rack_free and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(racks[broker_id])
    return tuple(replicas)


def _replica_index(first: int, shift: int, replica: int, brokers: int) -> int:
    return (first + 1 + (shift + replica) % (brokers - 1)) % brokers
