from __future__ import annotations

import math

from odradek.broker.meters.connection_meters import ConnectionMeters
from odradek.timer.clock import ManualClock
from odradek.timer.sampled_rate import METRIC_WINDOW_MS, METRIC_WINDOWS


def test_throttle_times_are_averaged_by_listener_until_they_are_old() -> None:
    clock = ManualClock()
    meters = ConnectionMeters(clock)
    for throttle_ms in (10, 30):
        meters.listener_throttled("A", throttle_ms)
    meters.address_throttled("B", 500)
    listener, other = meters.listeners["A"], meters.listeners["B"]
    assert listener.throttle_times.measure(clock.monotonic_ms()) == 20
    assert other.ip_throttle_times.measure(clock.monotonic_ms()) == 500
    assert math.isnan(listener.ip_throttle_times.measure(clock.monotonic_ms()))
    clock.advance(METRIC_WINDOWS * METRIC_WINDOW_MS)
    assert math.isnan(listener.throttle_times.measure(clock.monotonic_ms()))
