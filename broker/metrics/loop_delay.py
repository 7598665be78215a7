"""How late the event loop runs its callbacks, and how much of the time it waits for work.

A tick is due every `TICK_MS`; any other callback waits as long as the tick is late. Each tick also reads the processor
time of the loop's thread; the rest of the time is idle. `LoopMonitor` names the cause of a long pause; this module only
measures, at a hundredth of the cost.

Kafka: KafkaRequestHandlerPool, Processor: the idle ratio of their threads.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

from odradek.timer.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer
    from odradek.timer.task import TimerTask

TICK_MS: Final = 100
IDLE_WINDOW_MS: Final = 5_000
GENERATION_MS: Final = 60_000


class LoopDelay:
    """Measures from `start` to `stop`, on the loop's own thread."""

    def __init__(self, clock: Clock, timer: SystemTimer, on_tick: Callable[[int], None]) -> None:
        """`on_tick` is called with the time since the last tick, in ms."""
        self.delay_ms = Histogram()
        self.idle_share = 1.0
        """Of the last seconds, 0 to 1."""
        self._clock = clock
        self._timer = timer
        self._on_tick = on_tick
        self._due_ms = 0
        self._window = (0, 0.0)
        """When the window of `idle_share` began, and the processor time of the thread then."""
        self._generation_ends_ms = 0
        self._task: TimerTask | None = None

    def start(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._window = (now_ms, _thread_seconds())
        self._generation_ends_ms = now_ms + GENERATION_MS
        self._schedule(now_ms)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _schedule(self, now_ms: int) -> None:
        self._due_ms = now_ms + TICK_MS
        self._task = self._timer.schedule(TICK_MS, self._tick)

    def _tick(self) -> None:
        now_ms = self._clock.monotonic_ms()
        late_ms = max(0, now_ms - self._due_ms)
        self.delay_ms.update(late_ms)
        self._on_tick(TICK_MS + late_ms)
        if now_ms >= self._generation_ends_ms:
            self._generation_ends_ms = now_ms + GENERATION_MS
            self.delay_ms.begin_generation()
        began_ms, used_s = self._window
        if now_ms - began_ms >= IDLE_WINDOW_MS:
            now_used_s = _thread_seconds()
            self.idle_share = min(1.0, max(0.0, 1 - (now_used_s - used_s) * 1000 / (now_ms - began_ms)))
            self._window = (now_ms, now_used_s)
        self._schedule(now_ms)


def _thread_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime
