"""How long it took to load the partitions that a coordinator became responsible for, of the last 30 to 60 seconds.

Kafka: GroupMetadataManager.partitionLoadSensor, TransactionStateManager.partitionLoadSensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.timer.sampled_rate import METRIC_WINDOW_MS, METRIC_WINDOWS, Average, Maximum

if TYPE_CHECKING:
    from odradek.timer.clock import Clock


class LoadTimes:
    """The times of the partitions of one internal topic."""

    __slots__ = ("_average", "_clock", "_maximum")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._average = Average(window_count=METRIC_WINDOWS, window_ms=METRIC_WINDOW_MS)
        self._maximum = Maximum(window_count=METRIC_WINDOWS, window_ms=METRIC_WINDOW_MS)

    def now_ms(self) -> int:
        """The monotonic time at which a load begins, for `loaded`."""
        return self._clock.monotonic_ms()

    def loaded(self, began_ms: int) -> None:
        """A partition is loaded now; `began_ms`: when this broker was told to load it."""
        now_ms = self._clock.monotonic_ms()
        self._average.record(now_ms - began_ms, now_ms)
        self._maximum.record(now_ms - began_ms, now_ms)

    @property
    def average_ms(self) -> float:
        """NaN if no partition was loaded."""
        return self._average.measure(self._clock.monotonic_ms())

    @property
    def maximum_ms(self) -> float:
        """NaN if no partition was loaded."""
        return self._maximum.measure(self._clock.monotonic_ms())
