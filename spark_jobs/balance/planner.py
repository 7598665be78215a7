"""Plans which replicas move between brokers so that their loads come closer. Plain values; no cluster, no Spark.

Each step moves one replica from a broker to one with less load, the replica and the pair of brokers that reduce the sum
of the squared loads most. A replica moves only where the difference of the two loads is larger than its own: so no
step raises the largest load or lowers the smallest, and the plan is never worse than what was there.

A replica keeps its place in the list of replicas: if it was the preferred leader, the broker that gets it is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that may have replicas."""

    id: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition, and what one replica of it weighs and costs."""

    topic: str
    partition: int
    replicas: tuple[int, ...]  # the preferred leader first
    load: int  # what is balanced: bytes, or bytes a second
    size: int  # bytes to copy when a replica moves
    is_fixed: bool = False  # counted, but not moved

    @property
    def name(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One replica of a partition goes from a broker to another."""

    partition: Partition
    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Moves, and the loads of the brokers before and after them."""

    moves: tuple[Move, ...]
    before: Mapping[int, int]
    after: Mapping[int, int]

    @property
    def moved_bytes(self) -> int:
        return sum(move.partition.size for move in self.moves)

    def replicas(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The new replicas of each partition that changes."""
        changed: dict[tuple[str, int], tuple[int, ...]] = {}
        for move in self.moves:
            replicas = changed.get(move.partition.name, move.partition.replicas)
            changed[move.partition.name] = _replaced(replicas, move.source, move.target)
        return changed


def imbalance(loads: Mapping[int, int]) -> float:
    """The largest load divided by the mean; 1 if all are equal, or there is no load."""
    total = sum(loads.values())
    return max(loads.values()) * len(loads) / total if total else 1.0


def loads_of(brokers: Iterable[Broker], partitions: Iterable[Partition]) -> dict[int, int]:
    """The sum of the loads of each broker's replicas. Brokers that are not named (dead ones) are left out."""
    loads = dict.fromkeys((broker.id for broker in brokers), 0)
    for partition in partitions:
        for broker_id in partition.replicas:
            if broker_id in loads:
                loads[broker_id] += partition.load
    return loads


def make_plan(
    brokers: Sequence[Broker],
    partitions: Sequence[Partition],
    *,
    max_moved_bytes: int | None = None,
    max_moves: int | None = None,
    tolerance: float = 0.0,
) -> Plan:
    """Plan until no move helps, the limits are reached, or no broker is above `1 + tolerance` times the mean.

    A partition never has two replicas on one broker, keeps their number, and keeps at least as many racks.
    """
    planning = _Planning(brokers, partitions)
    moves: list[Move] = []
    budget = max_moved_bytes
    while max_moves is None or len(moves) < max_moves:
        if not planning.loads or imbalance(planning.loads) <= 1 + tolerance:
            break
        move = planning.best_move(budget)
        if move is None:
            break
        planning.apply(move)
        moves.append(move)
        if budget is not None:
            budget -= move.partition.size
    return Plan(moves=tuple(moves), before=loads_of(brokers, partitions), after=planning.loads)


def _replaced(replicas: Sequence[int], source: int, target: int) -> tuple[int, ...]:
    return tuple(target if broker_id == source else broker_id for broker_id in replicas)


@dataclass(slots=True, order=True)
class _Replica:
    """A replica that may move, sorted by its load."""

    load: int
    name: tuple[str, int]
    partition: Partition = field(compare=False)


class _Planning:
    """The state between two moves."""

    def __init__(self, brokers: Sequence[Broker], partitions: Sequence[Partition]) -> None:
        self.loads = loads_of(brokers, partitions)
        # A broker without a rack counts as a rack of its own.
        self._racks: dict[int, str | int] = {each.id: each.id if each.rack is None else each.rack for each in brokers}
        self._replicas = {partition.name: partition.replicas for partition in partitions}
        self._movable: dict[int, list[_Replica]] = {broker.id: [] for broker in brokers}
        for partition in partitions:
            if not partition.is_fixed and partition.load > 0:
                for broker_id in partition.replicas:
                    if broker_id in self._movable:
                        insort(self._movable[broker_id], _Replica(partition.load, partition.name, partition))

    def best_move(self, budget: int | None) -> Move | None:
        """The move that reduces the sum of the squared loads most, of at most `budget` bytes."""
        best: Move | None = None
        best_gain = 0
        by_load = sorted(self.loads, key=lambda broker_id: (self.loads[broker_id], broker_id))
        pairs = ((self.loads[s] - self.loads[t], s, t) for s in by_load for t in by_load)
        for difference, source, target in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
            if difference * difference // 2 < best_gain or difference <= 0:
                break  # no replica of these two, nor of the pairs after them, could gain more
            for replica in self._nearest(source, difference / 2):
                gain = 2 * replica.load * (difference - replica.load)
                if gain <= best_gain:
                    break
                if self._may_move(replica.partition, source, target, budget):
                    best, best_gain = Move(partition=replica.partition, source=source, target=target), gain
                    break
        return best

    def apply(self, move: Move) -> None:
        """The replica moves, and does not move again: what it costs is its size once."""
        partition = move.partition
        self._movable[move.source].remove(_Replica(partition.load, partition.name, partition))
        self._replicas[partition.name] = _replaced(self._replicas[partition.name], move.source, move.target)
        self.loads[move.source] -= partition.load
        self.loads[move.target] += partition.load

    def _nearest(self, broker_id: int, load: float) -> Iterator[_Replica]:
        """The replicas of a broker, those first whose load is nearest: they gain most."""
        replicas = self._movable[broker_id]
        above = bisect_left(replicas, load, key=lambda replica: replica.load)
        below = above - 1
        while below >= 0 or above < len(replicas):
            if below < 0 or (above < len(replicas) and replicas[above].load - load < load - replicas[below].load):
                yield replicas[above]
                above += 1
            else:
                yield replicas[below]
                below -= 1

    def _may_move(self, partition: Partition, source: int, target: int, budget: int | None) -> bool:
        if budget is not None and partition.size > budget:
            return False
        replicas = self._replicas[partition.name]
        if target in replicas:
            return False
        return self._number_of_racks(_replaced(replicas, source, target)) >= self._number_of_racks(replicas)

    def _number_of_racks(self, replicas: Iterable[int]) -> int:
        """A broker that is not known counts as a rack of its own."""
        return len({self._racks.get(broker_id, broker_id) for broker_id in replicas})
