from __future__ import annotations

import pytest

from odradek.broker.tools.admin.reassignment.log_dir_moves import (
    NOWHERE,
    Place,
    find_places,
    not_started,
    progress,
    start_moves,
)
from odradek.broker.tools.admin.reassignment.reassignment_plan import Replica
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, outcome

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def described(log_dir: str, *partitions: tuple[int, bool], error: int = 0) -> DescribeLogDirsResult:
    found = [DescribeLogDirsPartition(partition_index=index, is_future_key=future) for index, future in partitions]
    return DescribeLogDirsResult(
        error_code=error, log_dir=log_dir, topics=[DescribeLogDirsTopic(name="t", partitions=found)]
    )


def test_brokers_say_where_their_replicas_are_and_go(cluster: AdminCluster) -> None:
    dirs = {
        1: [described("/a", (0, False), (1, False)), described("/b", (0, True))],
        3: [described("/c", (0, False), error=ErrorCode.KAFKA_STORAGE_ERROR)],
    }
    cluster.on(DescribeLogDirsRequest, lambda broker_id, request: DescribeLogDirsResponse(results=dirs[broker_id]))
    (places,) = outcome(lambda client: find_places(client, [Replica(1, T0), Replica(3, T0)]))
    assert places == {Replica(1, T0): Place("/a", "/b"), Replica(3, T0): NOWHERE}
    assert places[Replica(1, T0)].is_moving()
    assert not places[Replica(3, T0)].is_moving()


@pytest.mark.parametrize(
    ("place", "line", "is_over"),
    [
        (Place(None, None), "Partition t-0 cannot be found in any live log directory on broker 1.", True),
        (Place("/b", None), "Reassignment of replica t-0-1 completed successfully.", True),
        (Place("/a", None), "Partition t-0 on broker 1 is not being moved from log dir /a to /b.", True),
        (Place("/a", "/b"), "Reassignment of replica t-0-1 is still in progress.", False),
        (Place("/a", "/c"), "Partition t-0 on broker 1 is being moved to log dir /c instead of /b.", False),
    ],
)
def test_progress_of_a_move(place: Place, line: str, is_over: bool) -> None:
    assert progress(Replica(1, T0), place, "/b") == (line, is_over)


def answering(cluster: AdminCluster, errors: dict[tuple[int, int], int]) -> None:
    def alter(broker_id: int, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
        results = [
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=errors.get((broker_id, index), 0))
            for log_dir in request.dirs
            for found in log_dir.topics
            for index in found.partitions
        ]
        return AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult(topic_name="t", partitions=results)])

    cluster.on(AlterReplicaLogDirsRequest, alter)


def test_moves_are_started_by_the_brokers_that_have_the_replicas(cluster: AdminCluster) -> None:
    answering(cluster, {(3, 0): ErrorCode.REPLICA_NOT_AVAILABLE})
    targets = {Replica(1, T0): "/a", Replica(1, T1): "/b", Replica(3, T0): "/a"}
    assert outcome(lambda client: start_moves(client, targets)) == [{Replica(1, T0), Replica(1, T1)}]
    assert cluster.requests(AlterReplicaLogDirsRequest)[0] == (
        1,
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(path="/a", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])]),
                AlterReplicaLogDir(path="/b", topics=[AlterReplicaLogDirTopic(name="t", partitions=[1])]),
            ]
        ),
    )


def test_a_directory_that_is_refused_ends_the_command(
    cluster: AdminCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(cluster, {(1, 0): ErrorCode.LOG_DIR_NOT_FOUND})
    outcome(lambda client: start_moves(client, {Replica(1, T0): "/a"}), status=1)
    assert capsys.readouterr().err.startswith("odradek: Failed to alter dir for t-0-1: ")


def test_those_that_could_not_be_started_are_named() -> None:
    assert str(not_started([Replica(2, T0), Replica(1, T1)])) == (
        "Timed out before log directory moves could be started for: t-1-1,t-0-2"
    )
    assert "move could" in str(not_started([Replica(2, T0)]))
