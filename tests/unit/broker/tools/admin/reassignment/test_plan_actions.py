from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.broker.tools.admin.client.admin_client import CommandFailed
from odradek.broker.tools.admin.reassignment.plan_actions import EXISTING, propose
from odradek.broker.tools.admin.reassignment.reassign import main
from odradek.broker.tools.admin.reassignment.reassignment_plan import parse_plan
from odradek.controller.model.broker_info import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Reassigning:
    """A cluster where topic t moves. `errors`: the controller's errors by partition."""

    def __init__(self, cluster: AdminCluster, path: Path) -> None:
        self.cluster = cluster
        self._path = path
        self.ongoing: list[OngoingPartitionReassignment] = []
        self.errors: dict[int, int] = {}
        self.future: str | None = None
        self.unready = 0
        cluster.has(topic("t", [1, 2], [2, 3]))
        cluster.on(ListPartitionReassignmentsRequest, self._list)
        cluster.on(AlterPartitionReassignmentsRequest, self._alter)
        cluster.on(IncrementalAlterConfigsRequest, lambda broker_id, request: IncrementalAlterConfigsResponse())
        cluster.on(DescribeLogDirsRequest, self._log_dirs)
        cluster.on(AlterReplicaLogDirsRequest, self._move)

    def file(self, *partitions: tuple[int, list[int]], **rest: object) -> str:
        entries = [{"topic": "t", "partition": index, "replicas": replicas, **rest} for index, replicas in partitions]
        self._path.write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(self._path)

    def topics_file(self, *names: str) -> str:
        self._path.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}))
        return str(self._path)

    def _list(self, broker_id: int, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        topics = [OngoingTopicReassignment(name="t", partitions=self.ongoing)] if self.ongoing else []
        return ListPartitionReassignmentsResponse(topics=topics)

    def _alter(
        self, broker_id: int, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        found = [
            ReassignablePartitionResponse(
                partition_index=partition.partition_index, error_code=self.errors.get(partition.partition_index, 0)
            )
            for partition in request.topics[0].partitions
        ]
        return AlterPartitionReassignmentsResponse(responses=[ReassignableTopicResponse(name="t", partitions=found)])

    def _log_dirs(self, broker_id: int, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        def log_dir(path: str, is_future: bool) -> DescribeLogDirsResult:
            partition = DescribeLogDirsPartition(partition_index=0, is_future_key=is_future)
            return DescribeLogDirsResult(log_dir=path, topics=[DescribeLogDirsTopic(name="t", partitions=[partition])])

        moving = [] if self.future is None else [log_dir(self.future, True)]
        return DescribeLogDirsResponse(results=[log_dir("/old", False), *moving])

    def _move(self, broker_id: int, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
        self.unready -= 1
        error = ErrorCode.REPLICA_NOT_AVAILABLE if self.unready >= 0 else ErrorCode.NONE
        result = AlterReplicaLogDirPartitionResult(partition_index=0, error_code=error)
        return AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult(topic_name="t", partitions=[result])])

    @property
    def configured(self) -> list[str]:
        requests = self.cluster.requests(IncrementalAlterConfigsRequest)
        return [request.resources[0].resource_name for _, request in requests]


@pytest.fixture
def reassigning(cluster: AdminCluster, tmp_path: Path) -> Reassigning:
    return Reassigning(cluster, tmp_path / "plan.json")


def test_a_plan_is_generated_that_spreads_the_topics_over_the_brokers(
    reassigning: Reassigning, command: Command
) -> None:
    topics = reassigning.topics_file("t")
    status, lines, _ = command(main, "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,3,")
    assert status == 0
    assert lines[0] == "Current partition replica assignment"
    assert parse_plan(lines[1]).partitions == {T0: [1, 2], T1: [2, 3]}
    assert lines[2:4] == ["", "Proposed partition reassignment configuration"]
    proposed = parse_plan(lines[4]).partitions
    assert {tp: sorted(replicas) for tp, replicas in proposed.items()} == {T0: [1, 3], T1: [1, 3]}


def test_a_plan_keeps_replicas_of_a_partition_in_different_racks() -> None:
    brokers = [Broker(1, (), "n"), Broker(2, (), "n"), Broker(3, (), "s")]
    for replicas in propose({T0: [1, 2], T1: [1, 2]}, brokers).values():
        assert 3 in replicas


@pytest.mark.parametrize(
    ("brokers", "reason"),
    [
        ([Broker(1, (), "n"), Broker(2, ())], "Add --disable-rack-aware in command line"),
        ([Broker(1, ())], "larger than available brokers"),
    ],
)
def test_no_plan_can_be_made(brokers: list[Broker], reason: str) -> None:
    with pytest.raises(CommandFailed, match=reason):
        propose({T0: [1, 2]}, brokers)


@pytest.mark.parametrize(
    ("topics", "brokers", "reason"),
    [
        (["t", "t"], "1", "duplicate entries: t"),
        (["t"], "1,1", "duplicate entries: 1,1"),
        (["t"], "1,x", "--broker-list takes numbers: 1,x"),
        (["t"], ",", "Replication factor: 2 larger than available brokers: 0"),
        (["u"], "1", "u not found"),
    ],
)
def test_invalid_proposal_is_refused(
    reassigning: Reassigning, command: Command, topics: list[str], brokers: str, reason: str
) -> None:
    path = reassigning.topics_file(*topics)
    status, _, error = command(main, "--generate", "--topics-to-move-json-file", path, "--broker-list", brokers)
    assert status == 1
    assert reason in error


def test_a_plan_is_executed(reassigning: Reassigning, command: Command) -> None:
    path = reassigning.file((0, [3, 1]), (1, [1]))
    status, lines, _ = command(main, "--execute", "--reassignment-json-file", path)
    assert status == 0
    assert lines[0] == "Current partition replica assignment"
    assert parse_plan(lines[2]).partitions == {T0: [1, 2], T1: [2, 3]}
    assert lines[4:] == [
        "Save this to use as the --reassignment-json-file option during rollback",
        "Successfully started partition reassignments for t-0,t-1",
    ]
    ((broker_id, request),) = reassigning.cluster.requests(AlterPartitionReassignmentsRequest)
    assert broker_id == 2
    partitions = [
        ReassignablePartition(partition_index=0, replicas=[3, 1]),
        ReassignablePartition(partition_index=1, replicas=[1]),
    ]
    assert request.topics == [ReassignableTopic(name="t", partitions=partitions)]
    assert reassigning.configured == []


def test_throttles_are_set_before_anything_moves(reassigning: Reassigning, command: Command) -> None:
    path = reassigning.file((0, [3]))
    _, lines, _ = command(main, "--execute", "--reassignment-json-file", path, "--throttle", "1000")
    assert lines[-3].startswith("Warning: You must run --verify periodically")
    assert lines[-2:] == [
        "The inter-broker throttle limit was set to 1000 B/s",
        "Successfully started partition reassignment for t-0",
    ]
    assert reassigning.configured == ["t", "1", "2", "3"]
    kinds = [type(request) for _, request in reassigning.cluster.asked]
    assert kinds.index(IncrementalAlterConfigsRequest) < kinds.index(AlterPartitionReassignmentsRequest)


def test_ongoing_reassignments_need_additional(reassigning: Reassigning, command: Command) -> None:
    reassigning.ongoing = [OngoingPartitionReassignment(partition_index=1, replicas=[2, 3, 1], adding_replicas=[1])]
    path = reassigning.file((0, [3]))
    status, lines, error = command(main, "--execute", "--reassignment-json-file", path)
    assert (status, lines, error) == (1, [], f"odradek: {EXISTING}\n")
    given = ("--additional", "--throttle", "1")
    status, _, _ = command(main, "--execute", "--reassignment-json-file", path, *given)
    assert status == 0
    ((_, request),) = (
        (broker, request)
        for broker, request in reassigning.cluster.requests(IncrementalAlterConfigsRequest)
        if request.resources[0].resource_name == "t"
    )
    assert {config.name: config.value for config in request.resources[0].configs} == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:2,1:3",
        "follower.replication.throttled.replicas": "0:3,1:1",
    }


@pytest.mark.parametrize(
    ("partitions", "reason"),
    [([(0, [9])], "Unknown broker id 9"), ([(7, [1])], "Unable to find partition: t-7"), ([], "cannot be empty")],
)
def test_plan_that_cannot_be_executed_is_refused(
    reassigning: Reassigning, command: Command, partitions: list[tuple[int, list[int]]], reason: str
) -> None:
    path = reassigning.file(*partitions)
    status, _, error = command(main, "--execute", "--reassignment-json-file", path)
    assert status == 1
    assert reason in error
    assert not reassigning.cluster.requests(AlterPartitionReassignmentsRequest)


def test_partitions_that_the_controller_refuses_are_named(reassigning: Reassigning, command: Command) -> None:
    reassigning.errors = {1: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    path = reassigning.file((0, [3]), (1, [1]))
    status, _, error = command(main, "--execute", "--reassignment-json-file", path)
    assert status == 1
    assert error == "odradek: Error reassigning partition(s):\nt-1: Replica assignment is invalid.\n"


def test_replicas_are_moved_to_directories_once_they_are_there(reassigning: Reassigning, command: Command) -> None:
    reassigning.unready = 1
    path = reassigning.file((0, [1]), log_dirs=["/new"])
    given = ("--replica-alter-log-dirs-throttle", "70")
    status, lines, _ = command(main, "--execute", "--reassignment-json-file", path, *given)
    assert status == 0
    assert lines[-3:] == [
        "The replica-alter-dir throttle limit was set to 70 B/s",
        "Successfully started partition reassignment for t-0",
        "Successfully started moving log directory to /new for replica t-0 with broker 1",
    ]
    reassigning.unready = 1
    status, _, error = command(main, "--execute", "--reassignment-json-file", path, "--timeout", "0")
    assert (status, error) == (1, "odradek: Timed out before log directory move could be started for: t-0-1\n")


def test_verify_tells_the_state_of_each_partition_and_lifts_the_throttle_at_the_end(
    reassigning: Reassigning, command: Command
) -> None:
    reassigning.ongoing = [OngoingPartitionReassignment(partition_index=0, replicas=[1, 2, 3])]
    path = reassigning.file((0, [3]), (1, [2, 3]), (2, [1]))
    status, lines, _ = command(main, "--verify", "--reassignment-json-file", path)
    assert status == 0
    assert lines[:4] == [
        "Status of partition reassignment:",
        "Reassignment of partition t-0 is still in progress.",
        "Reassignment of partition t-1 is completed.",
        "There is no active reassignment of partition t-2, but replica set is  rather than 1.",
    ]
    assert reassigning.configured == []
    reassigning.ongoing = []
    command(main, "--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert reassigning.configured == []
    _, lines, _ = command(main, "--verify", "--reassignment-json-file", path)
    assert lines[-2:] == [
        "Clearing broker-level throttles on brokers 1,2,3",
        "Clearing topic-level throttles on topic t",
    ]
    assert reassigning.configured == ["1", "2", "3", "t"]


@pytest.mark.parametrize("future", ["/new", None])
def test_verify_tells_where_replicas_are(reassigning: Reassigning, command: Command, future: str | None) -> None:
    reassigning.future = future
    path = reassigning.file((0, [1, 2]), log_dirs=["/new", "any"])
    _, lines, _ = command(main, "--verify", "--reassignment-json-file", path)
    line = (
        "Reassignment of replica t-0-1 is still in progress."
        if future
        else "Partition t-0 on broker 1 is not being moved from log dir /old to /new."
    )
    assert lines[2] == line
    assert bool(reassigning.configured) == (future is None)


@pytest.mark.parametrize("adding", [[3], []])
def test_cancel_ends_active_reassignments_and_moves_replicas_back(
    reassigning: Reassigning, command: Command, adding: list[int]
) -> None:
    reassigning.ongoing = [OngoingPartitionReassignment(partition_index=0, replicas=[1, 2, 3], adding_replicas=adding)]
    reassigning.future = "/new"
    path = reassigning.file((0, [1]), log_dirs=["/new"])
    status, lines, _ = command(main, "--cancel", "--reassignment-json-file", path, "--preserve-throttles")
    assert (status, lines) == (
        0,
        [
            "Successfully cancelled partition reassignment for: t-0",
            "Successfully started moving log directory to /old for replica t-0 with broker 1",
        ],
    )
    ((_, request),) = reassigning.cluster.requests(AlterPartitionReassignmentsRequest)
    assert request.topics[0].partitions == [ReassignablePartition(partition_index=0, replicas=None)]


def test_cancel_finds_nothing_to_do(reassigning: Reassigning, command: Command) -> None:
    _, lines, _ = command(main, "--cancel", "--reassignment-json-file", reassigning.file((0, [1])))
    assert lines[:2] == [
        "None of the specified partition reassignments are active.",
        "None of the specified partition moves are active.",
    ]
    assert reassigning.configured == ["1", "2", "3", "t"]
