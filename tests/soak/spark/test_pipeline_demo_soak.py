"""`make pipeline-demo` from end to end: its counts agree, its page is there, and no process is left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pyarrow.dataset
import pytest

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ManagedProcess
from tests.support.spark.pieces import quick_conf

CLICKS = 2_000
TIMEOUT_S = 600

pytestmark = pytest.mark.soak


def test_the_demo_runs_to_its_end_and_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "spark_jobs.pipeline_demo", "--output", str(folder), "--clicks", str(CLICKS)]
    for key, value in quick_conf(tmp_path).items():
        command += ["--conf", f"{key}={value}"]
    demo = ManagedProcess(command, tmp_path / "demo.log", cwd=REPOSITORY)

    demo.start()
    status = demo.wait(TIMEOUT_S)

    if status != 0:
        raise demo.error(f"ended with status {status}")
    assert "the broker has been stopped. Where to look:" in demo.log_text()
    rows = pyarrow.dataset.dataset(folder / "archive", partitioning="hive", exclude_invalid_files=True).to_table()
    archived = rows.column("topic").to_pylist()
    bad = (folder / "bad-records.jsonl").read_text().splitlines()
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert archived.count("clicks-valid") + len(bad) == CLICKS
    assert len(bad) > 20
    assert archived.count("sessions") == len(sessions) > 100
    assert all("odradek.reason" in json.dumps(json.loads(line)["headers"]) for line in bad)
    page = (folder / "lag" / "index.html").read_text()
    assert "reports" in page
    assert "billing" in page
    assert not [
        each for each in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(each.info["cmdline"] or ())
    ]
