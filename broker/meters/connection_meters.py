"""The connections of each listener since the start, and how long the limits on their rate delayed them.

Counted once for each connection, and only while metrics are on.

Kafka: Selector.SelectorMetrics, ConnectionQuotas.ListenerConnectionQuota.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.timer.sampled_rate import METRIC_WINDOW_MS, METRIC_WINDOWS, Average

if TYPE_CHECKING:
    from odradek.timer.clock import Clock


class ListenerMeters:
    """The figures of one listener."""

    __slots__ = ("accepted", "ip_throttle_times", "throttle_times")

    def __init__(self) -> None:
        self.accepted = 0
        """Connections that were within the limits."""
        self.throttle_times = _times()
        """Milliseconds for which the listener had to wait because it or the broker accepted too many a second."""
        self.ip_throttle_times = _times()
        """Milliseconds after which connections were closed because their address opened too many a second."""


class ConnectionMeters:
    """The figures of all listeners, by their names."""

    __slots__ = ("_clock", "listeners")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.listeners: defaultdict[str, ListenerMeters] = defaultdict(ListenerMeters)

    def listener_throttled(self, listener_name: str, throttle_ms: int) -> None:
        """The listener has to wait for so long."""
        self.listeners[listener_name].throttle_times.record(throttle_ms, self._clock.monotonic_ms())

    def address_throttled(self, listener_name: str, throttle_ms: int) -> None:
        """A connection is closed after so long."""
        self.listeners[listener_name].ip_throttle_times.record(throttle_ms, self._clock.monotonic_ms())


def _times() -> Average:
    return Average(window_count=METRIC_WINDOWS, window_ms=METRIC_WINDOW_MS)
