from __future__ import annotations

import json

import pytest

from odradek.broker.tools.perf.perf_consume import main
from tests.support.clusters.data_cluster import DataCluster
from tests.unit.broker.tools.data.consumer.test_group_member import Coordinator

BASE = ("-b", "host:9001", "--topic", "t")


@pytest.fixture
def filled(cluster: DataCluster) -> DataCluster:
    Coordinator(cluster).committed = {}
    cluster.fill("t", *[b"x" * 1024] * 64)
    return cluster


def test_its_lines(filled: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, "--messages", "64", "--print-metrics"]) == 0
    header, line, *metrics = capsys.readouterr().out.splitlines()
    assert len(header.split(", ")) == len(line.split(", ")) == 10
    assert line.split(", ")[2] == "0.0625"
    assert line.split(", ")[4] == "64"
    assert metrics[0].endswith("records-consumed-total : 64")


def test_json(filled: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    detailed = ["--show-detailed-stats", "--reporting-interval", "1", "--timeout", "500", "--print-metrics"]
    assert main([*BASE, "--messages", "65", "--json", *detailed]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["records"], found["consumed_megabytes"]) == (64, 0.0625)
    assert found["start_time_ms"] < found["end_time_ms"]
    assert found["metrics"]["records-consumed-total"] == 64
    assert found["intervals"][-1]["records"] == 64
    assert "WARNING: Exiting before" in captured.err


def test_too_few_records(filled: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*BASE, "--messages", "65", "--timeout", "500", "--hide-header", "--show-detailed-stats"]
    assert main([*arguments, "--reporting-interval", "1"]) == 0
    *lines, warning = capsys.readouterr().out.splitlines()
    assert warning.startswith("WARNING: Exiting before consuming the expected number of messages: timeout (500 ms)")
    assert lines
    assert all(len(line.split(", ")) == 10 and line.split(", ")[1] == "0" for line in lines)


def test_options(filled: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*BASE, "--messages", "1", "--reporting-interval", "0"])
    assert main([*BASE, "--messages", "1", "--date-format", "QQ"]) == 1
    assert "the letter Q is not known" in capsys.readouterr().err
    assert main([*BASE, "--messages", "1", "--threads", "3"]) == 0
    assert capsys.readouterr().out.startswith("WARNING: option [threads] and [num-fetch-threads] have been deprecated")
