"""`make test` passes each time, alone and beside busy processes, one for each processor.

ODRADEK_SOAK_SUITES shortens it. With `-s` each result is printed as it comes; the output of a run that fails is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
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
        for number in range(1, RUNS + 1):
            output = tmp_path / f"run-{number}"
            began = time.monotonic()
            with output.open("wb") as out:
                status = subprocess.run(
                    SUITE, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=REPOSITORY, check=False
                ).returncode
            result = output.read_text(errors="replace").rstrip().splitlines()[-1]
            print(f"run {number} of {RUNS}: {result}, {time.monotonic() - began:.0f} s in all", flush=True)
            if status:
                failed.append(output)
    assert not failed


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
