"""The quota of replication in bytes per second: a rate over a few windows, compared with a bound that may change.

A copier checks the quota before it reads, and records the bytes afterwards: it exceeds the bound by one chunk at most.
The rate is the bytes of all recent windows divided by the time since the first of them, or by one window if that is
longer.

Kafka: ReplicationQuotaManager, SimpleRate, SampledStat, TopicConfigHandler.parseThrottledPartitions.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.timer.clock import Clock


@dataclass(slots=True)
class _Window:
    """The bytes of one window, with the times of its first and last record."""

    start_ms: int
    last_ms: int
    amount: int


class ReplicationQuota:
    """One quota. `bound` returns the allowed bytes per second."""

    __slots__ = ("_bound", "_clock", "_window_count", "_window_ms", "_windows")

    def __init__(
        self, clock: Clock, bound: Callable[[], int], *, window_count: int = 11, window_ms: int = 1_000
    ) -> None:
        self._clock = clock
        self._bound = bound
        self._window_count = window_count
        self._window_ms = window_ms
        self._windows: deque[_Window] = deque()

    def record(self, size_in_bytes: int) -> None:
        now_ms = self._clock.monotonic_ms()
        if not self._windows or now_ms - self._windows[-1].start_ms >= self._window_ms:
            self._windows.append(_Window(now_ms, now_ms, 0))
        window = self._windows[-1]
        window.amount += size_in_bytes
        window.last_ms = now_ms

    @property
    def is_exceeded(self) -> bool:
        return self.bytes_per_second > self._bound()

    @property
    def bytes_per_second(self) -> float:
        now_ms = self._clock.monotonic_ms()
        windows = self._windows
        while windows and now_ms - windows[0].last_ms >= self._window_count * self._window_ms:
            windows.popleft()
        if not windows:
            return 0.0
        elapsed_ms = max(now_ms - windows[0].start_ms, self._window_ms)
        return sum(window.amount for window in windows) * 1_000 / elapsed_ms


def is_throttled(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas names the replica of `partition` on `broker_id`."""
    return "*" in replicas or f"{partition}:{broker_id}" in replicas
