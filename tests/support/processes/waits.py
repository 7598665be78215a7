"""How long an answer took, without the time in which a thread that had to work got no core.

On a busy machine the kernel lets a ready thread wait; `/proc/PID/schedstat` (proc(5), sched-stats.rst) counts that
time. What is left of a wait is what the client and the broker did, and what they waited for. All threads of the broker
count: while the one that has the interpreter's lock has no core, the others wait for the lock.
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
    """Without the time in which a thread of the broker, or this thread, was ready and had no core."""


class Waits:
    """Measures waits of the thread that makes it, for the threads that another process has. Close it on that thread."""

    def __init__(self, pid: int) -> None:
        tasks = f"/proc/{pid}/task"
        paths = ("/proc/thread-self/schedstat", *(f"{tasks}/{thread}/schedstat" for thread in os.listdir(tasks)))
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
        queued_s = max(0.0, self._queued() - self._queued_s)  # less than before, if a thread has ended
        return Wait(whole_s, max(0.0, whole_s - queued_s))

    def _queued(self) -> float:
        return sum(_queued_ns(file) for file in self._files) / 1e9


def _queued_ns(file: int) -> int:
    try:
        return int(os.pread(file, _LINE_BYTES, 0).split()[1])
    except ProcessLookupError:  # the thread has ended
        return 0
