"""The limit of processor time for children of the tests: what it lets pass, and what it finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import processor_time
from tests.support.processes.process import ManagedProcess, ProcessError

BUSY = "while True: pass"
PARENT_OF_BUSY = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{BUSY}'])"


@contextmanager
def running(program: str, path: Path) -> Iterator[ManagedProcess]:
    process = ManagedProcess([sys.executable, "-c", program], path / "log")
    process.start()
    try:
        yield process
    finally:
        process.kill_group()


def test_a_process_that_waits_for_something_else_is_not_charged(tmp_path: Path) -> None:
    with running("import time; time.sleep(1); print('ready', flush=True); time.sleep(60)", tmp_path) as process:
        assert process.wait_for_line_in_processor_time("ready", 0.5)


@pytest.mark.parametrize("program", [BUSY, PARENT_OF_BUSY])
def test_a_process_or_its_child_that_computes_for_too_long_is_found(program: str, tmp_path: Path) -> None:
    with running(program, tmp_path) as process, pytest.raises(ProcessError, match="within 0"):
        process.wait_for_line_in_processor_time("ready", 0.3)


def test_a_process_that_hangs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_time, "STALLED_AFTER_S", 1)
    with running("import time; time.sleep(60)", tmp_path) as process, pytest.raises(ProcessError, match="no processor"):
        process.wait_for_line_in_processor_time("ready", 60)
