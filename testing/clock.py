"""The clock of a broker: `broker.clock.advance("7d")`.

The broker's time goes on by itself, and `advance` adds to it. Clients are not concerned: they have their own clocks.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

_PART: Final = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(sorted(_UNITS_MS, key=len, reverse=True))})(?![a-z])\s*")


class _AsksNow(Protocol):
    def ask(self, name: str, /, **arguments: object) -> object: ...


class _AsksLater(Protocol):
    def ask(self, name: str, /, **arguments: object) -> Awaitable[object]: ...


class BrokerClock:
    """The clock of a `Broker`."""

    __slots__ = ("_broker",)

    def __init__(self, broker: _AsksNow) -> None:
        self._broker = broker

    def advance(self, duration: str | int | timedelta) -> None:
        """Let time pass: "7d", "1h 30m", "250ms", a `timedelta`, or milliseconds.

        What is due on the way has happened when it returns: retention, time-outs of sessions and transactions,
        compaction, idle connections, quotas, delegation tokens. Raises: ValueError.
        """
        self._broker.ask("advance_clock", ms=duration_ms(duration))

    def time_ms(self) -> int:
        """The wall-clock time of the broker in milliseconds since the epoch."""
        return _time_of(self._broker.ask("time_of_clock"))


class AsyncBrokerClock:
    """The clock of an `AsyncBroker`."""

    __slots__ = ("_broker",)

    def __init__(self, broker: _AsksLater) -> None:
        self._broker = broker

    async def advance(self, duration: str | int | timedelta) -> None:
        """As `BrokerClock.advance`."""
        await self._broker.ask("advance_clock", ms=duration_ms(duration))

    async def time_ms(self) -> int:
        """As `BrokerClock.time_ms`."""
        return _time_of(await self._broker.ask("time_of_clock"))


def duration_ms(duration: str | int | timedelta) -> int:
    """Milliseconds of a text like "1h 30m", of a `timedelta` or of milliseconds. Raises: ValueError, TypeError."""
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    if isinstance(duration, int) and not isinstance(duration, bool):
        return duration
    if not isinstance(duration, str):
        raise TypeError(f"a duration is a text, a timedelta or a number of milliseconds, not {duration!r}")
    position = 0
    total_ms = 0.0
    while position < len(duration) and (part := _PART.match(duration, position)) is not None:
        total_ms += float(part[1]) * _UNITS_MS[part[2]]
        position = part.end()
    if position < len(duration) or not duration.strip():
        raise ValueError(f'{duration!r} is no duration; write "7d", "1h 30m", "250ms"')
    return round(total_ms)


def _time_of(answer: object) -> int:
    assert isinstance(answer, int)
    return answer
