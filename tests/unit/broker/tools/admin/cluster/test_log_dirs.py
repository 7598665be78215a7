from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.cluster.log_dirs import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic


@pytest.fixture(autouse=True)
def directories(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [1]))

    def describe(broker_id: int, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        partitions = [DescribeLogDirsPartition(partition_index=1, partition_size=77, offset_lag=2, is_future_key=True)]
        whole = DescribeLogDirsResult(
            log_dir="/a", topics=[DescribeLogDirsTopic(name="t", partitions=partitions)], error_code=0
        )
        failed = DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResponse(results=[whole, failed] if broker_id == 1 else [])

    cluster.on(DescribeLogDirsRequest, describe)


def test_the_json_is_that_of_kafka(command: Command) -> None:
    status, lines, _ = command(main, "--describe", "--broker-list", "1,3")
    assert (status, lines[:2]) == (
        0,
        ["Querying brokers for log directories information", "Received log directory information from brokers 1,3"],
    )
    value = json.loads(lines[2])
    replica = {"partition": "t-1", "size": 77, "offsetLag": 2, "isFuture": True}
    storage_error = "org.apache.kafka.common.errors.KafkaStorageException"
    assert value == {
        "version": 1,
        "brokers": [
            {
                "broker": 1,
                "logDirs": [
                    {"partitions": [replica], "error": None, "logDir": "/a"},
                    {"partitions": [], "error": storage_error, "logDir": "/b"},
                ],
            },
            {"broker": 3, "logDirs": []},
        ],
    }
    assert json.loads("".join(command(main, "--describe", "--broker-list", "1,3", "--json")[1])) == value


def test_replicas_are_a_table_on_a_terminal(command: Command) -> None:
    _, lines, _ = command(main, "--describe", "--table")
    assert lines[2].split() == ["BROKER", "LOG", "DIR", "TOPIC", "PARTITION", "SIZE", "OFFSET", "LAG", "IS", "FUTURE"]
    assert lines[3].split() == ["1", "/a", "t", "1", "77", "2", "yes"]


def test_topics_are_named_with_their_partitions(command: Command, cluster: AdminCluster) -> None:
    command(main, "--describe", "--topic-list", "t,nope")
    asked = [request.topics for _, request in cluster.requests(DescribeLogDirsRequest)]
    assert asked == [[DescribableLogDirTopic(topic="t", partitions=[0, 1])]] * 3


def test_brokers_that_are_not_there_are_an_error(command: Command) -> None:
    status, _, error = command(main, "--describe", "--broker-list", "1,8")
    assert (status, error) == (
        1,
        "odradek: ERROR: The given brokers do not exist from --broker-list: 8. Current existent brokers: 1,2,3\n",
    )
    with pytest.raises(SystemExit, match="2"):
        command(main, "--describe", "--broker-list", "x")
