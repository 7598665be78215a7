"""How much more memory a broker and its workers need at their peaks."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

PEAK_BEGINS_ANEW: Final = "5"
"""For `/proc/PID/clear_refs`: the peak resident size becomes the present one (proc(5))."""


class Growth:
    """From now on. A worker that starts later counts in full, one that ends as long as `look` has seen it."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._before: dict[int, int] = {}
        for process in self._processes():
            with suppress(FileNotFoundError, psutil.NoSuchProcess):
                Path(f"/proc/{process.pid}/clear_refs").write_text(PEAK_BEGINS_ANEW)
                self._before[process.pid] = process.memory_info().rss
        self._peaks: dict[int, int] = {}
        self.look()

    def look(self) -> None:
        for process in self._processes():
            with suppress(FileNotFoundError, ProcessLookupError):
                self._peaks[process.pid] = max(self._peaks.get(process.pid, 0), peak_bytes(process.pid))

    @property
    def most(self) -> int:
        """In bytes: the peaks of all processes together, although not all have theirs at the same time."""
        self.look()
        return sum(self._peaks.values()) - sum(self._before.values())

    def __str__(self) -> str:
        """The broker and its workers each on its own, so that a test that fails tells which of them has grown."""
        grown = {pid: (self._before.get(pid, 0) >> 10, peak >> 10) for pid, peak in self._peaks.items()}
        return ", ".join(f"process {pid} from {before:,} to {peak:,} KB" for pid, (before, peak) in grown.items())

    def _processes(self) -> list[psutil.Process]:
        return [self._process, *self._process.children()]


def peak_bytes(pid: int) -> int:
    """The peak resident size; 0 of a process that has ended and is still in the table."""
    _, separator, rest = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")
    return int(rest.split()[0]) * 1024 if separator else 0
