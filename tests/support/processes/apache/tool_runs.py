"""Runs Kafka's tools one after the other in one JVM: a start costs more than all the rest of a run."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.processes.apache.jvm import QUICK_START, program_command

PROGRAM = Path(__file__).parents[2] / "jvm" / "ToolRuns.java"
TIMEOUT_S = 240


class Printed(NamedTuple):
    """How a run ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def run_in_one_jvm(runs: Sequence[Sequence[str]]) -> list[Printed]:
    """The outcome of each run: a class and its arguments."""
    command = program_command(PROGRAM, options=(*QUICK_START, "-Dfile.encoding=UTF-8"))
    lines = "".join("\t".join(run) + "\n" for run in runs)
    finished = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=TIMEOUT_S, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    answers = io.BytesIO(finished.stdout)
    printed = []
    for _ in runs:
        status, out_size, err_size = map(int, answers.readline().split())
        printed.append(Printed(status, answers.read(out_size).decode(), answers.read(err_size).decode()))
    assert not answers.read()
    return printed
