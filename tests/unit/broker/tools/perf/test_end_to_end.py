from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from odradek.broker.tools.perf.end_to_end import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from tests.support.clusters.data_cluster import DataCluster


def test_its_lines(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.fill("t", b"from before")
    assert main(["host:9001", "t", "3", "all", "10"]) == 0
    first, average, shares = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"0\t\d+\.\d+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", shares)


def test_json(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.fill("t", b"from before")
    assert main(["host:9001", "t", "3", "all", "10", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["records"] == 3
    assert 0 <= found["p50_latency_ms"] <= found["p999_latency_ms"]
    assert found["average_latency_ms"] > 0
    assert re.fullmatch(r"0\t\d+\.\d+\n", captured.err)


def test_a_topic_is_created(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def create(broker_id: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        if broker_id == 1:
            return CreateTopicsResponse(topics=[CreatableTopicResult(error_code=ErrorCode.NOT_CONTROLLER)])
        cluster.create(request.topics[0].name)
        return CreateTopicsResponse(topics=[CreatableTopicResult()])

    cluster.on(CreateTopicsRequest, create)
    assert main(["host:9001", "new", "1", "1", "5"]) == 0
    assert capsys.readouterr().out.startswith(
        'Topic "new" does not exist. Will create topic with 1 partition(s) and replication factor = 1\n'
    )


def test_a_transactional_id_is_refused(
    cluster: DataCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "properties").write_text("transactional.id=x")
    assert main(["host:9001", "t", "1", "all", "5", str(tmp_path / "properties")]) == 1
    assert capsys.readouterr().err.startswith("odradek: transactional.id: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["host:9001", "t", "x", "all", "5"], "USAGE"),
        (["host:9001", "t", "1", "0", "5"], "Latency testing requires synchronous acknowledgement"),
    ],
)
def test_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert capsys.readouterr().err.startswith(message)
