"""How long an answer took, without the time in which a thread that had to work got no core.

On a busy machine the kernel lets a ready thread wait; `/proc/PID/schedstat` (proc(5), sched-stats.rst) counts that
time. What is left of a wait is what the client and the broker did, and what they waited for.
"""

from __future__ import annotations

import os
import time
from typing import Final, NamedTuple

_LINE_BYTES: Final = 200


class Wait(NamedTuple):
    """In seconds."""

    whole_s: float
    undisturbed_s: float
    """Without the time in which the main thread of the broker, or this thread, was ready and had no core."""


class Waits:
    """Measures waits of the thread that makes it, for the main thread of another process. Close it on that thread."""

    def __init__(self, pid: int) -> None:
        paths = ("/proc/thread-self/schedstat", f"/proc/{pid}/task/{pid}/schedstat")
        self._files = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
        self._began_s = self._queued_s = 0.0

    def close(self) -> None:
        for file in self._files:
            os.close(file)

    def begin(self) -> None:
        self._queued_s = self._queued()
        self._began_s = time.monotonic()

    def end(self) -> Wait:
        """Since `begin`."""
        whole_s = time.monotonic() - self._began_s
        return Wait(whole_s, max(0.0, whole_s - (self._queued() - self._queued_s)))

    def _queued(self) -> float:
        return sum(int(os.pread(file, _LINE_BYTES, 0).split()[1]) for file in self._files) / 1e9
