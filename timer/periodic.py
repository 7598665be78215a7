"""Work that recurs until it is cancelled.

The next round is scheduled before the work begins. So an exception ends one round and not the job (it is reported like
every error of a timer task), and the work may cancel the task. After a round that took longer than the interval the
next begins at once. An interval of 0 makes one round, as in Kafka.

Kafka: KafkaScheduler, which logs what a periodic task throws and continues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.timer.task import TimerTask

if TYPE_CHECKING:
    from odradek.timer.system_timer import SystemTimer


class PeriodicTask(TimerTask):
    """`name` is for the log. `interval_ms` may be changed: the new one holds from the round after the next on."""

    __slots__ = ("_timer", "_work", "interval_ms", "name")

    recurs = True

    def __init__(self, timer: SystemTimer, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        super().__init__(interval_ms)
        self.name = name
        self.interval_ms = interval_ms
        self._timer = timer
        self._work = work

    def start(self, *, initial_delay_ms: int | None = None) -> None:
        """Let the first round come after the initial delay, or after an interval. To be called once."""
        self.delay_ms = self.interval_ms if initial_delay_ms is None else initial_delay_ms
        self._timer.add(self)

    def run(self) -> None:
        if self.interval_ms > 0:
            self.delay_ms = self._timer.round_delay_ms(self.interval_ms)
            self._timer.add(self)
        self._work()

    def __repr__(self) -> str:
        return f"<{self.name}, every {self.interval_ms} ms>"
