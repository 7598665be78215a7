"""The timer that removes followers that stopped fetching from the ISR.

It runs twice in ``replica.lag.time.max.ms``, so a follower leaves the ISR at most half of that too late. The high
watermark then also moves past a lagging follower that was about to join; Apache Kafka checks the ISR only.

Kafka: the isr-expiration task, ReplicaManager.maybeShrinkIsr.
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
    """The periodic task over `partitions`."""

    def __init__(
        self, partitions: Callable[[], Iterable[Partition]], timer: SystemTimer, replica_lag_time_max_ms: int
    ) -> None:
        self._partitions = partitions
        self._walks = Walks(timer, PARTITIONS_AT_ONCE)
        self._task = PeriodicTask(timer, "isr-expiration", max(replica_lag_time_max_ms // 2, 1), self._check)

    def begin(self) -> None:
        self._task.start()

    def finish(self) -> None:
        self._task.cancel()
        self._walks.stop()

    def _check(self) -> None:
        self._walks.walk(self._partitions(), _check_partition)


def _check_partition(partition: Partition) -> None:
    partition.in_sync.maybe_shrink_isr()
    partition.in_sync.review_high_watermark()
