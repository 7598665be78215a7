"""Runs kafka-dump-log, always in the same JVM, and `odradek dump-log`, in this process."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from odradek.broker.tools.dump_log import dump_log
from tests.support.processes.jvm import QUICK_START, java_executable, libs_dir

PROGRAM = Path(__file__).parents[1] / "jvm" / "DumpLogs.java"
TIMEOUT_S = 240


class Printed(NamedTuple):
    """How a run ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def files_argument(files: Sequence[Path]) -> list[str]:
    return ["--files", ",".join(map(str, files))]


def kafka_prints(runs: Sequence[Sequence[str]]) -> list[Printed]:
    """The output of Apache's tool for each list of arguments."""
    command = [java_executable(), *QUICK_START, "-Dfile.encoding=UTF-8", "-cp", f"{libs_dir()}/*", str(PROGRAM)]
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


def we_print(run: Sequence[str]) -> Printed:
    """The output of `odradek dump-log`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = dump_log.main(run)
    return Printed(status, out.getvalue(), err.getvalue())


def compare(runs: Sequence[Sequence[str]]) -> list[Printed]:
    """Both print the same lines and end alike, on stderr too unless that is a stack trace; what was printed."""
    all_printed = []
    for run, theirs in zip(runs, kafka_prints(runs), strict=True):
        ours = we_print(run)
        where = " ".join(run).replace(os.getcwd(), ".")
        pairs = zip_longest(ours.stdout.split("\n"), theirs.stdout.split("\n"))
        differing = next(((mine, other) for mine, other in pairs if mine != other), None)
        assert differing is None, f"{where}\nours:   {differing[0]!r}\ntheirs: {differing[1]!r}\n{ours.stderr}"
        assert ours.status == theirs.status, f"{where}\n{theirs.stderr}\n{ours.stderr}"
        if not theirs.status and "failed schema validation" not in theirs.stderr:
            assert ours.stderr.split("\n") == theirs.stderr.split("\n"), where
        all_printed.append(ours)
    return all_printed
