"""Writes the high watermarks to ``replication-offset-checkpoint``, every few seconds and at shutdown.

Nothing is written before the first LeaderAndIsr: no partition is hosted until then, and an empty checkpoint would lose
them all. A leader starts at the high watermark of the checkpoint, so readers do not see it go back over a restart.

Kafka: ReplicaManager.startHighWatermarkCheckPointThread, ReplicaManager.checkpointHighWatermarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from odradek.storage.manager.log_manager import LogManager
    from odradek.timer.system_timer import SystemTimer


class HighWatermarkCheckpoints:
    """The periodic write; `interval_ms` is ``replica.high.watermark.checkpoint.interval.ms``."""

    def __init__(self, log_manager: LogManager, timer: SystemTimer, interval_ms: int) -> None:
        self._log_manager = log_manager
        self._is_begun = False
        self._task = PeriodicTask(
            timer, "highwatermark-checkpoint", interval_ms, log_manager.checkpoint_high_watermarks
        )

    def begin(self) -> None:
        """Start the periodic write, once the partitions are known. Further calls change nothing."""
        if not self._is_begun:
            self._is_begun = True
            self._task.start()

    def finish(self) -> None:
        """Write the last checkpoint, if `begin` was called."""
        self._task.cancel()
        if self._is_begun:
            self._log_manager.checkpoint_high_watermarks()
