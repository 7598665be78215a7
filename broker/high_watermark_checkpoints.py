"""The high watermarks on disk: written every few seconds, and at the end (``replication-offset-checkpoint``).

Nothing is written before the first LeaderAndIsr: until then no partition is hosted, and a checkpoint would forget them
all. A leader starts at the high watermark found there, so that its readers do not see it go back over a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.storage.log_manager import LogManager
    from odradek.timer.system_timer import SystemTimer


class HighWatermarkCheckpoints:
    def __init__(self, log_manager: LogManager, timer: SystemTimer, interval_ms: int) -> None:
        self._log_manager = log_manager
        self._timer = timer
        self._interval_ms = interval_ms
        self._is_begun = False
        self._is_over = False

    def begin(self) -> None:
        """The partitions are known; further calls change nothing."""
        if not self._is_begun:
            self._is_begun = True
            self._schedule()

    def finish(self) -> None:
        """Write the last one, if there was a first."""
        self._is_over = True
        if self._is_begun:
            self._log_manager.checkpoint_high_watermarks()

    def _schedule(self) -> None:
        self._timer.schedule(self._interval_ms, self._write)

    def _write(self) -> None:
        if not self._is_over:
            self._log_manager.checkpoint_high_watermarks()
            self._schedule()
