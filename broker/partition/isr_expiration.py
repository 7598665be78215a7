"""Followers that are not heard of fall out of sync: nothing but time can tell, so leaders look every so often.

They look twice in ``replica.lag.time.max.ms``, so a follower leaves the ISR at most half of that too late; and at most
so late the high watermark moves past one that was to join. Kafka: the isr-expiration task of ReplicaManager, which
looks at the ISR only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.partition.high_watermark_reviews import PARTITIONS_AT_ONCE
from odradek.timer.periodic import PeriodicTask
from odradek.timer.walks import Walks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.partition.partition import Partition
    from odradek.timer.system_timer import SystemTimer


class IsrExpiration:
    def __init__(
        self, partitions: Callable[[], Iterable[Partition]], timer: SystemTimer, replica_lag_time_max_ms: int
    ) -> None:
        self._partitions = partitions
        self._walks = Walks(timer, PARTITIONS_AT_ONCE)
        self._task = PeriodicTask(timer, "isr-expiration", max(replica_lag_time_max_ms // 2, 1), self._look)

    def begin(self) -> None:
        self._task.start()

    def finish(self) -> None:
        self._task.cancel()
        self._walks.stop()

    def _look(self) -> None:
        self._walks.walk(self._partitions(), _look_at)


def _look_at(partition: Partition) -> None:
    partition.in_sync.maybe_shrink()
    partition.in_sync.review_high_watermark()
