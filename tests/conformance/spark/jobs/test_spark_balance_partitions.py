"""`balance_partitions` on three brokers: the example of docs/spark.md, and its plan carried out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.cli import main as odradek
from spark_jobs.balance_partitions import main
from tests.support.admin import Admin
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.apache.tools import Tools
from tests.support.processes.process import ManagedProcess
from tests.support.spark.pieces import Outgoing, SparkJob, send
from tests.support.waiting import eventually

START_TIMEOUT_S = 30
END_TIMEOUT_S = 120
BEGUN = r"^broker "
START_LIMIT_S = 60
PAGE = REPOSITORY / "docs" / "spark.md"
BEGIN_MS = 1_700_000_000_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The bootstrap servers of three brokers, whose log directories are in data/."""
    command = [sys.executable, "-m", "odradek", "serve", "--brokers", "3", "--port", "0", "--data", "data"]
    environment = {"PYTHONPATH": str(REPOSITORY / "src")}
    process = ManagedProcess(command, tmp_path / "cluster.log", cwd=tmp_path, env=environment)
    process.start()
    yield str(process.wait_for_line(r"^  bootstrap servers  (\S+)$", START_TIMEOUT_S)[1])
    assert process.terminate() == 0
    assert "Traceback" not in process.log_text()


def fill(bootstrap: str) -> None:
    """Two topics on the brokers 0 and 1 alone; one customer has most of the orders."""
    admin = Admin(bootstrap)
    admin.create_assigned_topic("orders", [(0, 1), (1, 0), (0, 1), (1, 0)], {"retention.ms": "-1"})
    admin.create_assigned_topic("payments", [(0,), (0,)], {"retention.ms": "-1"})
    for topic, partitions, size in (("orders", 4, 1_000), ("payments", 2, 300)):
        records = (
            Outgoing(
                key=b"customer %d" % (7 if number % 5 < 2 else number % 100),
                value=b"x" * size,
                partition=number % partitions,
                timestamp_ms=BEGIN_MS + number * 100,
            )
            for number in range(1_200)
        )
        # One record a batch: so many bytes, in every run.
        send(bootstrap, topic, records, **{"linger.ms": 0, "batch.num.messages": 1})


def example() -> tuple[list[str], list[str]]:
    """The arguments and the output of the example in the page."""
    section = PAGE.read_text().partition("## Balancing brokers")[2].partition("\n## ")[0]
    command, output = re.findall(r"```\n(.*?)```", section, re.DOTALL)[:2]
    first = command.partition("\n.venv/bin/odradek")[0].replace("\\\n", " ").split()
    return first[first.index("spark_jobs.balance_partitions") + 1 :], output.splitlines()


def run_job(arguments: list[str], directory: Path) -> list[str]:
    """What the job printed, without Spark's own lines and the progress."""
    job = SparkJob("balance_partitions", arguments, directory)
    lines = job.run(BEGUN, START_LIMIT_S, END_TIMEOUT_S).splitlines()
    return [line for line in lines if " tasks" not in line and "WARNING" not in line]


def imbalances(lines: list[str]) -> dict[str, str]:
    found = (re.fullmatch(r"imbalance (\w+): the largest broker has (\S+) times the mean", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_the_plan_of_the_page_is_carried_out_and_the_imbalance_falls_as_predicted(
    cluster: str, tmp_path: Path, tools: Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster)
    arguments, expected = example()
    arguments += ["--bootstrap-servers", cluster]
    printed = run_job(arguments, tmp_path)
    assert printed == expected
    before, predicted = imbalances(printed)["before"], imbalances(printed)["after"]
    assert float(predicted) < float(before)

    plan = tmp_path / "plan.json"
    where = ["--bootstrap-server", cluster, "--reassignment-json-file", str(plan)]
    accepted = tools.run("reassign-partitions", *where, "--execute")
    assert "Successfully started partition reassignments" in accepted.stdout
    assert odradek(["reassign", "--execute", "--additional", *where]) == 0
    capsys.readouterr()

    def verified() -> str:
        assert odradek(["reassign", "--verify", *where]) == 0
        return str(capsys.readouterr().out)

    moved = len(json.loads(plan.read_text())["partitions"])
    eventually(verified, accept=lambda text: text.count("is completed.") == moved, timeout_s=60)

    again = run_job([*arguments, "--dry-run"], tmp_path)
    assert imbalances(again)["before"] == predicted


def test_what_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log-dirs", str(tmp_path / "gone")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("balance_partitions: error: ")
    assert str(tmp_path / "gone") in error
    assert error.count("\n") == 1
