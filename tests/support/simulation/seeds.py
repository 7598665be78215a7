"""Runs seeds of the simulation in processes of their own, for tests: all must hold, and the same seed does the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[3]
PROCESSES: Final = 2


class Seeds:
    """Some seeds, being run."""

    def __init__(self, first: int, count: int, *options: str) -> None:
        path = os.pathsep.join(str(REPOSITORY / name) for name in ("src", "."))
        command = [sys.executable, "-m", "tests.support.simulation", str(first), str(count)]
        self._process = subprocess.Popen(
            [*command, *options],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def output(self) -> str:
        """What was printed, when they are through; fails if a seed did."""
        output, _ = self._process.communicate()
        assert self._process.returncode == 0, output
        return output


def run_seeds(first: int, count: int, *options: str) -> None:
    """Run them all, on all the processors."""
    size = -(-count // PROCESSES)
    running = [Seeds(start, min(size, first + count - start), *options) for start in range(first, first + count, size)]
    for seeds in running:
        print(seeds.output())
