"""Stops a process for a while: its connections stay open, and nothing comes back."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import eventually


def pause(pid: int) -> None:
    """SIGSTOP, and wait until no thread runs: `kill` returns before the threads on other processors have stopped."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: states(pid), accept=lambda found: found == {"T"})


def resume(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def states(pid: int) -> set[str]:
    """The states of all threads, as in proc(5); a thread may end meanwhile."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name of the program comes before, in parentheses.
            found.add(path.read_text().rpartition(")")[2].split()[0])
    return found
