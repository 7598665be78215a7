"""The high watermarks on disk: written every few seconds, and at the end (``replication-offset-checkpoint``).

Nothing is written before the first LeaderAndIsr: until then no partition is hosted, and a checkpoint would forget them
all. A leader starts at the high watermark found there, so that its readers do not see it go back over a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from odradek.storage.manager.log_manager import LogManager
    from odradek.timer.system_timer import SystemTimer


class HighWatermarkCheckpoints:
    def __init__(self, log_manager: LogManager, timer: SystemTimer, interval_ms: int) -> None:
        self._log_manager = log_manager
        self._is_begun = False
        self._task = PeriodicTask(
            timer, "highwatermark-checkpoint", interval_ms, log_manager.checkpoint_high_watermarks
        )

    def begin(self) -> None:
        """The partitions are known; further calls change nothing."""
        if not self._is_begun:
            self._is_begun = True
            self._task.start()

    def finish(self) -> None:
        """Write the last one, if there was a first."""
        self._task.cancel()
        if self._is_begun:
            self._log_manager.checkpoint_high_watermarks()
