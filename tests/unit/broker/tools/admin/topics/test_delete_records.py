from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.broker.tools.admin.topics.delete_records import main, parse_offsets
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic


def entry(partition: int, offset: int) -> dict[str, object]:
    return {"topic": "t", "partition": partition, "offset": offset}


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"partitions": [entry(1, -1), entry(0, 5), entry(9, 1)], "version": 1}))
    return str(path)


def test_leaders_delete_records(cluster: AdminCluster, command: Command, plan: str) -> None:
    cluster.has(topic("t", [1], [2]))

    def delete(broker_id: int, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        assert request.timeout_ms == 30_000
        found = [
            DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=max(partition.offset, 0) + 100
            )
            for partition in request.topics[0].partitions
        ]
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=found)])

    cluster.on(DeleteRecordsRequest, delete)
    status, lines, error = command(main, "--offset-json-file", plan)
    assert (status, error) == (1, "odradek: the records of 1 partition(s) were not deleted\n")
    assert lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: t-0\tlow_watermark: 105",
        "partition: t-1\tlow_watermark: 100",
        "partition: t-9\terror: This server does not host this topic-partition.",
    ]
    rows = json.loads("".join(command(main, "--offset-json-file", plan, "--json")[1]))
    assert rows[0] == {"topic": "t", "partition": 0, "low_watermark": 105, "error": "NONE"}
    assert rows[2]["error"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name


def test_the_version_is_1() -> None:
    assert parse_offsets(json.dumps({"partitions": [entry(0, 3)]})) == {TopicPartition("t", 0): 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not a list of partitions and offsets"),
        ("[]", "not a list of partitions and offsets"),
        ("{}", "Missing partitions field"),
        ('{"partitions": [], "version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "not a list of partitions and offsets"),
        ('{"partitions": [3]}', "not a list of partitions and offsets"),
        (json.dumps({"partitions": [entry(0, 1), entry(0, 2)]}), "contains duplicate topic partitions: t-0"),
    ],
)
def test_a_file_that_is_not_valid_is_refused(text: str, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        parse_offsets(text)
