"""`python -m tests.benchmarks` from its arguments to its report: two small workloads of Odradek alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.comparison.saved import saved, write_report

REPOSITORY = Path(__file__).parents[1]
TIMEOUT_S = 120


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def test_a_run_makes_a_report(tmp_path: Path) -> None:
    done = bench("start_up", "latency/fresh", "--only", "Odradek", "--pairs=2", "--scale=0.01", f"--report={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    [run] = saved(tmp_path / "report.json")
    figures = {(result.name, each.name): each.ours for result in run.results for each in result.comparisons}
    assert all(0 < seconds < TIMEOUT_S for seconds in figures["start_up", "first answer"])
    assert all(len(values) == 2 for values in figures.values())
    assert figures["latency/fresh", "p50"] <= figures["latency/fresh", "p99.9"]
    written = (tmp_path / "report.md").read_text()
    assert "first answer, s" in written
    write_report([run], tmp_path / "again")
    assert (tmp_path / "again" / "report.md").read_text() == written


def test_a_name_that_is_not_there_is_refused() -> None:
    done = bench("produce", "prodcue")
    assert done.returncode == 2
    assert "no benchmark of the name prodcue" in done.stderr
