"""Followers that are not heard of fall out of sync: nothing but time can tell, so leaders look every so often.

They look twice in ``replica.lag.time.max.ms``, so a follower leaves the ISR at most half of that too late. Answers to
the isr-expiration task of ReplicaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.partition import Partition
    from odradek.timer.system_timer import SystemTimer


class IsrExpiration:
    def __init__(
        self, partitions: Callable[[], Iterable[Partition]], timer: SystemTimer, replica_lag_time_max_ms: int
    ) -> None:
        self._partitions = partitions
        self._timer = timer
        self._interval_ms = max(replica_lag_time_max_ms // 2, 1)
        self._is_over = False

    def begin(self) -> None:
        self._timer.schedule(self._interval_ms, self._look)

    def finish(self) -> None:
        self._is_over = True

    def _look(self) -> None:
        if self._is_over:
            return
        for partition in list(self._partitions()):
            partition.in_sync.maybe_shrink()
        self.begin()
