"""Runs kafka-dump-log, always in the same JVM, and `odradek dump-log`, in this process."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from odradek.broker.tools.dump_log import dump_log
from tests.support.processes.apache.tool_runs import Printed, run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES


def files_argument(files: Sequence[Path]) -> list[str]:
    return ["--files", ",".join(map(str, files))]


def kafka_prints(runs: Sequence[Sequence[str]]) -> list[Printed]:
    """The output of Apache's tool for each list of arguments."""
    return run_in_one_jvm([[TOOL_CLASSES["dump-log"], *run] for run in runs])


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
