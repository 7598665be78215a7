"""Limits the log lines that any client can cause: the first line of a kind is printed, further ones are counted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

INTERVAL_MS: Final = 1000
MAX_KINDS: Final = 256
"""With more kinds than this, all counts begin again."""


class RateLimitedLog:
    """Prints at most one line per kind and second; the next line says how many were left out."""

    __slots__ = ("_clock", "_kinds", "_logger")

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._kinds: dict[object, tuple[int, int]] = {}
        """Kind -> (when its last line was printed, lines left out since)."""

    def warning(self, kind: object, message: str, *args: object) -> None:
        now_ms = self._clock.monotonic_ms()
        printed_ms, left_out = self._kinds.get(kind, (now_ms - INTERVAL_MS, 0))
        if now_ms - printed_ms < INTERVAL_MS:
            self._kinds[kind] = (printed_ms, left_out + 1)
            return
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        self._kinds[kind] = (now_ms, 0)
        if left_out:
            message += " (%d more like this since the last line)"
            args = (*args, left_out)
        self._logger.warning(message, *args)
