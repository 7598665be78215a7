"""`odradek perf` beside Apache's perf tools on the same broker: the same lines, and figures that fit together."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import COMMAND_TIMEOUT_S, REPOSITORY

pytestmark = pytest.mark.oracle

RECORDS = 5_000
SIZE = 100


def shape(line: str) -> str:
    """A line with each number replaced."""
    return re.sub(r"\d+(\.\d+)?(E-\d+)?", "N", line)


@pytest.fixture
def perf() -> Callable[..., list[str]]:
    def run(*arguments: str) -> list[str]:
        """The lines that `odradek perf` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "odradek", "perf", *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=True,
            cwd=REPOSITORY,
        )
        return [line for line in done.stdout.splitlines() if line.strip()]

    return run


def test_the_lines_are_apaches(
    broker: Broker, tools: Tools, perf: Callable[..., list[str]], unique: Callable[[str], str]
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("perf"))
    arguments = ["--topic", topic, "--num-records", str(RECORDS), "--record-size", str(SIZE), "--throughput", "-1"]
    arguments += ["--producer-props", f"bootstrap.servers={broker.bootstrap}"]
    theirs, ours = tools.run("producer-perf-test", *arguments).lines, perf("produce", *arguments)
    assert shape(ours[-1]) == shape(theirs[-1])
    assert ours[-1].startswith(f"{RECORDS} records sent, ")

    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--messages", str(2 * RECORDS)]
    theirs, ours = tools.run("consumer-perf-test", *arguments).lines, perf("consume", *arguments)
    assert [shape(line) for line in ours] == [shape(line) for line in theirs]
    assert ours[0] == theirs[0]
    fields = [line[-1].split(", ") for line in (ours, theirs)]
    assert fields[0][2] == fields[1][2] == f"{2 * RECORDS * SIZE / 2**20:.4f}", "both have read both"
    assert fields[0][4] == fields[1][4] == str(2 * RECORDS)
    megabytes, rate, fetch_ms, fetch_rate = (float(fields[0][index]) for index in (2, 3, 7, 8))
    assert rate <= fetch_rate
    assert fetch_rate == pytest.approx(megabytes / fetch_ms * 1000, rel=0.01)

    arguments = [broker.bootstrap, topic, "20", "all", "100"]
    theirs, ours = tools.run("end-to-end-latency", *arguments).lines, perf("end-to-end", *arguments)
    assert [shape(line) for line in ours] == [shape(line) for line in theirs]


def test_a_rate_is_not_exceeded(broker: Broker, perf: Callable[..., list[str]], unique: Callable[[str], str]) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("perf"))
    arguments = ["--topic", topic, "--num-records", "400", "--record-size", "10", "--throughput", "200"]
    (line,) = perf("produce", *arguments, "-b", broker.bootstrap)
    assert 0 < float(line.split()[3]) < 202
