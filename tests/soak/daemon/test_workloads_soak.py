"""Every workload of `make bench` runs beside Apache Kafka: one pair of each, with a hundredth of the usual work.

Some minutes for the main ones. `ODRADEK_SOAK_WORKLOADS="produce connections"` runs these groups alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.catalog import GROUPS
from tests.benchmarks.comparison.saved import saved
from tests.support.processes.apache.jvm import REPOSITORY

CHOSEN = os.environ.get("ODRADEK_SOAK_WORKLOADS", " ".join(GROUPS)).split()


@pytest.mark.soak
@pytest.mark.parametrize("group", CHOSEN)
def test_the_workloads_of_a_group_run(group: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks", group, "--pairs=1", "--scale=0.01", f"--report={tmp_path}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = [result for run in saved(tmp_path / "report.json") for result in run.results]
    assert [result.name for result in results if not result.comparisons] == []
    assert all(each.ours for result in results for each in result.comparisons)
