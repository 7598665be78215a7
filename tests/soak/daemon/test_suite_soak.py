"""`make test` passes each time: alone, beside busy processes, one for each processor, and two of it at once.

ODRADEK_SOAK_SUITES shortens it. With `-s` each result is printed as it comes; the output of a run that fails is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scheduling import OPTIONS
from tests.support.processes.apache.jvm import REPOSITORY

pytestmark = pytest.mark.soak

RUNS = int(os.environ.get("ODRADEK_SOAK_SUITES", "10"))
SUITE = [sys.executable, "-m", "pytest", *OPTIONS, "-m", "not soak and not kerberos and not images", "tests"]


@pytest.mark.parametrize("is_busy", [False, True], ids=["alone", "beside_busy_processes"])
def test_the_suite_passes_each_time(is_busy: bool, tmp_path: Path) -> None:
    failed = []
    with busy_processes((os.cpu_count() or 1) if is_busy else 0):
        for number in range(RUNS):
            failed += failures([Run(number + 1, tmp_path)])
    assert not failed


def test_two_at_once_pass_each_time(tmp_path: Path) -> None:
    """Each is what the other one has beside it, so this takes less time than twice as many runs alone."""
    failed = []
    for number in range(1, RUNS, 2):
        failed += failures([Run(number, tmp_path), Run(number + 1, tmp_path)])
    assert not failed


class Run:
    """The suite in a process of its own, whose output goes to a file."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.output = directory / f"run-{number}"
        self._began = time.monotonic()
        with self.output.open("wb") as out:
            self._process = subprocess.Popen(SUITE, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=REPOSITORY)

    def passes(self) -> bool:
        """Wait for its end, and print the result."""
        status = self._process.wait()
        result = self.output.read_text(errors="replace").rstrip().splitlines()[-1]
        print(f"run {self.number} of {RUNS}: {result}, {time.monotonic() - self._began:.0f} s in all", flush=True)
        return status == 0


def failures(runs: Sequence[Run]) -> list[Path]:
    """Wait for all of them. Returns the outputs of those that failed."""
    return [run.output for run in runs if not run.passes()]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that compute until the block ends."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
