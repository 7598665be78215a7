"""A limit of processor time for a process that starts: on a busy machine a JVM gets a core late, and needs no more.

A limit of time would have to be as long as the busiest machine needs, and would find a process that hangs late.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import psutil

LOOK_INTERVAL_S: Final = 0.2
"""Who has which children is read from all processes of the machine."""

STALLED_AFTER_S: Final = 60
STALLED_CPU_S: Final = 0.2
"""A process that uses less than this in `STALLED_AFTER_S` waits for something else than a core."""


class ProcessorTime:
    """The processor time of a process and its children since now, with a limit in seconds."""

    def __init__(self, pid: int, limit_s: float) -> None:
        self._process = psutil.Process(pid)
        self._limit_s = limit_s
        self._begun_s = self._last_s = self._used_s()
        self._last_look_s = time.monotonic()
        self._next_look_s = self._last_look_s

    def refusal(self) -> str | None:
        """Why one should wait no longer; None while the process makes progress within its limit."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return None
        self._next_look_s = now_s + LOOK_INTERVAL_S
        used_s = self._used_s()
        if used_s - self._begun_s > self._limit_s:
            return f"within {self._limit_s} s of processor time"
        if used_s - self._last_s > STALLED_CPU_S:
            self._last_s, self._last_look_s = used_s, now_s
        elif now_s - self._last_look_s > STALLED_AFTER_S:
            return f"and has used no processor time for {STALLED_AFTER_S} s"
        return None

    def _used_s(self) -> float:
        used_s = 0.0
        with suppress(psutil.NoSuchProcess):
            for member in (self._process, *self._process.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    used_s += sum(member.cpu_times()[:4])  # own and of ended children, user and system
        return used_s
