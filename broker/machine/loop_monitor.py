"""Measures how late the event loop runs its callbacks, and logs what held it up.

A tick is due every `TICK_MS`. A late tick shows how long any other callback has waited: behind one long callback, or
behind many short ones. The monitor counts the ticks by their lateness. A tick that is later than the limit is logged
with the use of the time since the previous tick: computing and system calls (processor time of the loop's thread),
waiting for a core (as the kernel counts it), and the rest, which is waiting for a disk or the GIL.

A blocked loop cannot log its stack. A thread checks it every `WATCH_MS`: when a tick is overdue, the thread records the
stack of the loop's thread, and the log line names the callback and its innermost function.

Off unless `odradek.event.loop.pause.ms` is set: 200 ticks a second cost half a per cent of a core.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from odradek.timer.clock import Clock

TICK_MS: Final = 5
WATCH_MS: Final = 10

SHARES: Final = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
"""The percentiles in the summary."""

UNSEEN: Final = "not seen"
"""Logged instead of the callback if the pause ended before the thread checked the loop."""

logger = logging.getLogger(__name__)


class Loop(Protocol):
    """The used part of an asyncio loop."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object: ...


class _Times(NamedTuple):
    """A thread's times so far, in ms: in its own code, in system calls, and ready but without a core."""

    user_ms: float
    system_ms: float
    queued_ms: float


class LoopMonitor:
    """Counts the lateness of ticks, from `start` to `stop`. Start it on the loop's own thread."""

    def __init__(self, loop: Loop, clock: Clock, pause_ms: int) -> None:
        self.pause_ms = pause_ms
        self.lateness_ms: dict[int, int] = {}
        """Lateness -> number of ticks."""
        self._loop = loop
        self._clock = clock
        self._thread_id = threading.get_ident()
        self._last_tick_ms = 0
        self._used = _Times(0, 0, 0)
        self._schedule_statistics = -1
        self._seen: tuple[int, str] = (0, UNSEEN)
        """The time of the tick before a pause, and the callback that ran in that pause."""
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="loop-monitor", daemon=True)

    def start(self) -> None:
        self._last_tick_ms = self._clock.monotonic_ms()
        self._schedule_statistics = _open_schedule_statistics()
        self._used = self._times()
        self._loop.call_later(TICK_MS / 1000, self._tick)
        self._watcher.start()

    def stop(self) -> None:
        """Stop counting and log the summary."""
        self._stopped.set()
        self._watcher.join()
        if self._schedule_statistics >= 0:
            os.close(self._schedule_statistics)
        logger.info("Event loop: %s", self.summary())

    def summary(self) -> str:
        """The percentiles of the lateness, and the longest."""
        ticks = sum(self.lateness_ms.values())
        figures = [f"{name} {self.percentile_ms(share)} ms" for share, name in SHARES]
        longest = max(self.lateness_ms, default=0)
        beyond = sum(count for late_ms, count in self.lateness_ms.items() if late_ms > self.pause_ms)
        return f"{ticks} ticks, late by {', '.join(figures)}, longest {longest} ms; {beyond} beyond {self.pause_ms} ms"

    def percentile_ms(self, share: float) -> int:
        """The lateness that `share` of the ticks do not exceed."""
        left = sum(self.lateness_ms.values()) * share
        for late_ms in sorted(self.lateness_ms):
            left -= self.lateness_ms[late_ms]
            if left <= 0:
                return late_ms
        return 0

    def _tick(self) -> None:
        if self._stopped.is_set():
            return
        self._loop.call_later(TICK_MS / 1000, self._tick)
        seen = self._seen  # before anything that lets the watching thread run, which would see this method
        now_ms = self._clock.monotonic_ms()
        late_ms = max(0, now_ms - self._last_tick_ms - TICK_MS)
        self.lateness_ms[late_ms] = self.lateness_ms.get(late_ms, 0) + 1
        used = self._times()
        if late_ms > self.pause_ms:
            self._log_pause(seen, late_ms, *(now - before for now, before in zip(used, self._used, strict=True)))
        self._last_tick_ms, self._used = now_ms, used

    def _times(self) -> _Times:
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        queued_ns = 0
        if self._schedule_statistics >= 0:
            queued_ns = int(os.pread(self._schedule_statistics, 128, 0).split()[1])
        return _Times(usage.ru_utime * 1000, usage.ru_stime * 1000, queued_ns / 1_000_000)

    def _log_pause(
        self, seen: tuple[int, str], late_ms: int, user_ms: float, system_ms: float, queued_ms: float
    ) -> None:
        last_tick_ms, where = seen
        logger.warning(
            "The event loop was held up for %d ms (%.0f ms computing, %.0f ms in system calls, %.0f ms without a core, "
            "the rest waiting) by %s",
            late_ms,
            user_ms,
            system_ms,
            queued_ms,
            where if last_tick_ms == self._last_tick_ms else UNSEEN,
        )

    # In the watching thread

    def _watch(self) -> None:
        while not self._stopped.wait(WATCH_MS / 1000):
            last_tick_ms = self._last_tick_ms
            if self._clock.monotonic_ms() - last_tick_ms > TICK_MS + self.pause_ms // 2:
                frame = sys._current_frames().get(self._thread_id)
                if frame is not None:
                    self._seen = (last_tick_ms, describe(frame))


def describe(frame: FrameType) -> str:
    """The callback that the loop's thread runs, and the innermost function of its stack."""
    stack = []
    inner: FrameType | None = frame
    while inner is not None and not inner.f_globals.get("__name__", "").startswith("asyncio."):
        stack.append(inner)
        inner = inner.f_back
    if not stack:
        return "the event loop itself"
    names = [f"{found.f_globals.get('__name__')}.{found.f_code.co_qualname}:{found.f_lineno}" for found in stack]
    return names[0] if len(names) == 1 else f"{names[-1]}, in {names[0]}"


def _open_schedule_statistics() -> int:
    """A descriptor of this thread's scheduler statistics; -1 if the kernel does not count them."""
    try:
        return os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
