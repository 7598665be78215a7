from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.admin.reassignment.elect_leaders import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from tests.support.clusters.admin_cluster import AdminCluster, Command


@pytest.fixture(autouse=True)
def elections(cluster: AdminCluster) -> None:
    results = [
        PartitionResult(partition_id=0),
        PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED),
        PartitionResult(partition_id=2, error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, error_message="it sleeps"),
    ]

    def elect(broker_id: int, request: ElectLeadersRequest) -> ElectLeadersResponse:
        asked = None if request.topic_partitions is None else request.topic_partitions[0].partitions
        found = [result for result in results if asked is None or result.partition_id in asked]
        return ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic="t", partition_result=found)])

    cluster.on(ElectLeadersRequest, elect)


def test_the_result_of_each_of_all_partitions_is_printed(cluster: AdminCluster, command: Command) -> None:
    assert command(main, "--election-type", "PREFERRED", "--all-topic-partitions") == (
        1,
        [
            "Successfully completed leader election (PREFERRED) for partitions t-0",
            "Valid replica already elected for partitions t-1",
            "Error completing leader election (PREFERRED) for partition: t-2: it sleeps",
        ],
        "odradek: 1 replica(s) could not be elected\n",
    )
    ((broker_id, request),) = cluster.requests(ElectLeadersRequest)
    assert (broker_id, request.election_type, request.topic_partitions) == (2, 0, None)


def test_one_partition(cluster: AdminCluster, command: Command) -> None:
    status, lines, _ = command(main, "--election-type", "unclean", "--topic", "t", "--partition", "0")
    assert (status, lines) == (0, ["Successfully completed leader election (UNCLEAN) for partitions t-0"])
    ((_, request),) = cluster.requests(ElectLeadersRequest)
    assert (request.election_type, request.topic_partitions) == (1, [TopicPartitions(topic="t", partitions=[0])])


def test_partitions_of_a_file(cluster: AdminCluster, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "partitions.json"
    path.write_text('{"partitions": [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 0}]}')
    status, _, _ = command(main, "--election-type", "preferred", "--path-to-json-file", str(path))
    assert status == 0
    ((_, request),) = cluster.requests(ElectLeadersRequest)
    assert request.topic_partitions == [TopicPartitions(topic="t", partitions=[1, 0])]


def test_an_error_of_the_whole(cluster: AdminCluster, command: Command) -> None:
    cluster.on(
        ElectLeadersRequest,
        lambda broker_id, request: ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    )
    status, _, error = command(main, "--election-type", "preferred", "--all-topic-partitions")
    assert (status, error) == (1, "odradek: Leader election: Cluster authorization failed.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--election-type", "preferred"],
        ["--election-type", "preferred", "--topic", "t"],
        ["--election-type", "preferred", "--partition", "1", "--all-topic-partitions"],
        ["--election-type", "other", "--all-topic-partitions"],
        ["--all-topic-partitions"],
    ],
)
def test_usage(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(main, *arguments)
    assert ended.value.code == 2
