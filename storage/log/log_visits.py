"""Visiting many logs without holding the event loop up: a few in one callback, the next few in another.

Invariant: a log that was closed or whose directory failed since the walk began is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.timer.walks import Walks

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.system_timer import SystemTimer

LOGS_AT_ONCE: Final = 50
"""Visited by one callback. Looking for something to compact takes some 20 microseconds in a log of four segments."""


class LogVisits:
    """Walks over logs, until they are stopped."""

    __slots__ = ("walks",)

    def __init__(self, timer: SystemTimer) -> None:
        self.walks = Walks(timer, LOGS_AT_ONCE)

    def stop(self) -> None:
        """No log is visited any more."""
        self.walks.stop()

    def visit(
        self, logs: list[UnifiedLog], work: Callable[[UnifiedLog], object], done: Callable[[], object] | None = None
    ) -> None:
        """Do `work` for each of the logs, the first ones now, and then call `done`."""

        def visit(log: UnifiedLog) -> None:
            if log.log_dir.is_online and not log.is_closed:
                work(log)

        self.walks.walk(logs, visit, done)
