"""The replicas of a partition, with and without a reassignment (KIP-455).

While a partition is reassigned, its replica list holds the target replicas first and then the original ones:

| list | meaning |
| --- | --- |
| replicas | target ∪ original, target first |
| adding | target − original: they must catch up |
| removing | original − target: they are stopped when the target is in sync |

The topic node stores only these three lists; *original = replicas − adding*, *target = replicas − removing*. A
reassignment that replaces another starts from the same original, so replicas that only the earlier one was adding are
dropped. The original *order* is lost when original and target overlap.

Kafka: ReplicaAssignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class ReplicaAssignment(NamedTuple):
    """The replicas of a partition, and which of them a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        return _minus(self.replicas, self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        return _minus(self.replicas, self.removing_replicas)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    def reassign_to(self, target: Iterable[int]) -> ReplicaAssignment:
        """The assignment during the reassignment from the original replicas to `target`."""
        wanted = tuple(target)
        original = self.origin_replicas
        return ReplicaAssignment(
            replicas=tuple(dict.fromkeys(wanted + original)),
            adding_replicas=self.added_by(wanted),
            removing_replicas=_minus(original, wanted),
        )

    def added_by(self, target: tuple[int, ...]) -> tuple[int, ...]:
        """The replicas that a reassignment to `target` adds."""
        return _minus(tuple(dict.fromkeys(target)), self.origin_replicas)

    def with_replica(self, replica: int) -> ReplicaAssignment:
        return ReplicaAssignment((*self.replicas, replica), self.adding_replicas, self.removing_replicas)

    def remove_replica(self, replica: int) -> ReplicaAssignment:
        removed = (replica,)
        return ReplicaAssignment(
            _minus(self.replicas, removed),
            _minus(self.adding_replicas, removed),
            _minus(self.removing_replicas, removed),
        )

    def __str__(self) -> str:
        def listed(replicas: tuple[int, ...]) -> str:
            return ",".join(map(str, replicas))

        return (
            f"ReplicaAssignment(replicas={listed(self.replicas)}, addingReplicas={listed(self.adding_replicas)}, "
            f"removingReplicas={listed(self.removing_replicas)})"
        )


NO_REPLICAS = ReplicaAssignment(())


def _minus(replicas: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in removed)
