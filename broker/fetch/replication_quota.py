"""The quota of replication in bytes per second: a rate over a few windows, compared with a bound that may change.

A copier checks the quota before it reads, and records the bytes afterwards: it exceeds the bound by one chunk at most.

Kafka: ReplicationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.timer.sampled_rate import SimpleRate

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from odradek.timer.clock import Clock


class ReplicationQuota:
    """One quota. `bound` returns the allowed bytes per second."""

    __slots__ = ("_bound", "_clock", "_rate")

    def __init__(
        self, clock: Clock, bound: Callable[[], int], *, window_count: int = 11, window_ms: int = 1_000
    ) -> None:
        self._clock = clock
        self._bound = bound
        self._rate = SimpleRate(window_count=window_count, window_ms=window_ms)

    def record(self, size_in_bytes: int) -> None:
        self._rate.record(size_in_bytes, self._clock.monotonic_ms())

    @property
    def is_exceeded(self) -> bool:
        return self.bytes_per_second > self._bound()

    @property
    def bytes_per_second(self) -> float:
        return self._rate.measure(self._clock.monotonic_ms())


def is_throttled(replicas: Set[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's throttled replicas, as in `LogConfig`, name the replica of `partition` on `broker_id`."""
    return "*" in replicas or f"{partition}:{broker_id}" in replicas
