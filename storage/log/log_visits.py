"""Work on many logs that does not block the event loop: `LOGS_AT_ONCE` logs per callback.

Invariant: logs that were closed, or whose directory failed, since the walk began are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.timer.walks import Walks

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.system_timer import SystemTimer

LOGS_AT_ONCE: Final = 50
"""Logs per callback. The check for compaction takes about 20 microseconds for a log of four segments."""


class LogVisits:
    """Walks over logs, until they are stopped."""

    __slots__ = ("walks",)

    def __init__(self, timer: SystemTimer) -> None:
        self.walks = Walks(timer, LOGS_AT_ONCE)

    def stop(self) -> None:
        """Cancel all walks."""
        self.walks.stop()

    def visit(
        self, logs: list[UnifiedLog], work: Callable[[UnifiedLog], object], done: Callable[[], object] | None = None
    ) -> None:
        """Call `work` for each log, for the first ones at once, then `done`."""

        def visit(log: UnifiedLog) -> None:
            if log.log_dir.is_online and not log.is_closed:
                work(log)

        self.walks.walk(logs, visit, done)
