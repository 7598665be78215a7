from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from odradek.broker.tools.command.socket_loop import Event
from odradek.broker.tools.data.client.data_client import DataClient
from odradek.broker.tools.perf.perf_produce import main
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import AdjustableClock
from tests.support.clusters.data_cluster import DataCluster

BASE = ("--topic", "t", "--throughput", "-1", "--producer-props", "bootstrap.servers=host:9001")
TOTAL = r"(\d+) records sent, .* records/sec \(.* MB/sec\), .* ms avg latency, .* ms 99\.9th\."


def values(cluster: DataCluster) -> list[bytes | None]:
    return [record.value for record in cluster.records(TopicPartition("t", 0))]


def test_records_and_their_line(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--num-records", "300", "--record-size", "10", "--print-metrics", *BASE]) == 0
    total, *metrics = capsys.readouterr().out.splitlines()
    assert re.fullmatch(TOTAL, total)
    assert total.startswith("300 records sent")
    assert "producer-metrics:record-send-total : 300" in metrics
    assert {len(value or b"") for value in values(cluster)} == {10}
    assert len(values(cluster)) == 300


def test_json(cluster: DataCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\n")
    assert main(["--num-records", "3", "--payload-file", str(path), "--json", "--print-metrics", *BASE]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["records_sent"] == found["metrics"]["record-send-total"] == 3
    assert found["p50_latency_ms"] <= found["p999_latency_ms"] <= found["max_latency_ms"]
    assert found["records_per_second"] >= 0
    assert "Number of messages read: 1" in captured.err


def test_other_payloads(cluster: DataCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--num-records", "3", "--payload-monotonic", *BASE]) == 0
    assert values(cluster) == [b"0", b"1", b"2"]
    cluster.logs.clear()
    path = tmp_path / "lines"
    path.write_text("one\n")
    assert main(["--num-records", "2", "--payload-file", str(path), *BASE]) == 0
    assert values(cluster) == [b"one", b"one"]
    assert "Number of messages read: 1" in capsys.readouterr().out


def test_transactions(cluster: DataCluster) -> None:
    cluster.on(AddPartitionsToTxnRequest, lambda broker_id, request: AddPartitionsToTxnResponse())
    cluster.on(EndTxnRequest, lambda broker_id, request: EndTxnResponse())
    assert main(["--num-records", "3", "--record-size", "1", "--transaction-duration-ms", "60000", *BASE]) == 0
    assert [request.committed for request in cluster.requests(EndTxnRequest)] == [True]


def test_a_transactional_id_without_transactions(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--num-records", "3", "--record-size", "1", *BASE, "transactional.id=x"]) == 1
    assert "transactional.id needs --transaction-duration-ms" in capsys.readouterr().err
    assert not cluster.logs


def test_a_rate(cluster: DataCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses make up for what the records are ahead of the rate, and for no more."""
    clock, wait = AdjustableClock(), DataClient.wait
    pauses_ms: list[int] = []

    async def pause(client: DataClient, delay_ms: int, event: Event | None = None) -> None:
        if event is None:
            pauses_ms.append(delay_ms)
            clock.advance(delay_ms)
        else:
            await wait(client, delay_ms, event)

    monkeypatch.setattr(DataClient, "wait", pause)
    monkeypatch.setattr("odradek.broker.tools.data.client.running.SystemClock", lambda: clock)
    arguments = ["--topic", "t", "--num-records", "30", "--record-size", "1", "--throughput", "1000", "-b", "host:9001"]
    assert main(arguments) == 0
    rate = float(capsys.readouterr().out.split()[3])
    assert rate <= 1_150, "30 records take at least 27 ms"
    assert sum(pauses_ms) <= 30


def test_no_server_is_named(cluster: DataCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1"]) == 1
    assert capsys.readouterr().err == "odradek: Either --producer-props or --producer.config must be specified.\n"
