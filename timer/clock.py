"""Where time comes from: the only module of Odradek that imports `time`.

A broker has two kinds of time, and mixing them up is a bug each way. *Wall-clock time* goes into records, log
segments and znodes and can jump when an operator or NTP sets it. *Monotonic time* never jumps; every delay, time-out
and session is measured on it. Both are whole milliseconds, the unit of Kafka's protocol, rounded down, as by Kafka.
The time that a request takes is measured in nanoseconds of the monotonic clock.

Kafka: Time.milliseconds, Time.hiResClockMs, Time.nanoseconds.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The port for time, injected wherever time is read."""

    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""

    def monotonic_ns(self) -> int:
        """The same time in nanoseconds."""


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    monotonic_ns = staticmethod(time.monotonic_ns)
    """Called eight times for a request whose times are taken, so without a function of Python in between."""

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def local_time(time_ms: int) -> time.struct_time:
    """A moment of the wall clock in the time zone of the process. `datetime` would take 2 ms to import."""
    return time.localtime(time_ms // 1000)


class AdjustableClock(SystemClock):
    """The machine's clocks and an offset: time passes by itself, and `advance` adds to it. For brokers of tests."""

    __slots__ = ("_offset_ms",)

    def __init__(self) -> None:
        self._offset_ms = 0

    def time_ms(self) -> int:
        return super().time_ms() + self._offset_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._offset_ms

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() + self._offset_ms * 1_000_000

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass on both clocks. Raises: ValueError for a negative number."""
        if ms < 0:
            raise ValueError(f"time does not go back: {ms} ms")
        self._offset_ms += ms


class ManualClock:
    """A clock that moves only when it is told to: for tests, simulations and tools."""

    __slots__ = ("_monotonic_ms", "_time_ms")

    def __init__(self, start_ms: int = 0, *, monotonic_ms: int | None = None) -> None:
        self._time_ms = start_ms
        self._monotonic_ms = start_ms if monotonic_ms is None else monotonic_ms

    def time_ms(self) -> int:
        return self._time_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def monotonic_ns(self) -> int:
        return self._monotonic_ms * 1_000_000

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass on both clocks."""
        if ms < 0:
            raise ValueError(f"time does not go back: {ms} ms")
        self._time_ms += ms
        self._monotonic_ms += ms

    def set_time_ms(self, time_ms: int) -> None:
        """Set the wall clock, forward or back, as an operator would; the monotonic clock does not notice."""
        self._time_ms = time_ms


def sleep_ms(ms: int) -> None:
    """Wait, in a process that has nothing else to do. The broker's own never does."""
    time.sleep(ms / 1000)
