from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.topics.topics import main
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.support.clusters.admin_cluster import TOPIC_ID, AdminCluster, Command, topic


def create(cluster: AdminCluster, error: ErrorCode = ErrorCode.NONE) -> None:
    def answer(broker_id: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=found.name, error_code=error) for found in request.topics]
        )

    cluster.on(CreateTopicsRequest, answer)


@pytest.fixture(autouse=True)
def some_topics(cluster: AdminCluster) -> None:
    cluster.has(topic("b", [1, 2], [2, 3]), topic("a", [3]), topic("__consumer_offsets", [1], is_internal=True))


def test_names_are_listed_in_order(command: Command) -> None:
    assert command(main, "--list") == (0, ["__consumer_offsets", "a", "b"], "")
    assert command(main, "--list", "--exclude-internal")[1] == ["a", "b"]
    assert command(main, "--list", "--topic", "a,__.*")[1] == ["__consumer_offsets", "a"]


def describable(cluster: AdminCluster, error: ErrorCode = ErrorCode.NONE) -> None:
    def configs(broker_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        assert {(found.resource_type, found.configuration_keys) for found in request.resources} == {(2, None)}
        found = [
            DescribeConfigsResourceResult(name="retention.ms", value="1", config_source=1),
            DescribeConfigsResourceResult(name="min.insync.replicas", value="2", config_source=5),
        ]
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    error_code=error, error_message=None, resource_name=resource.resource_name, configs=found
                )
                for resource in request.resources
            ]
        )

    def reassignments(broker_id: int, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        assert (broker_id, request.topics) == (2, None)
        moving = OngoingPartitionReassignment(partition_index=1, replicas=[2, 3], adding_replicas=[3])
        return ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="b", partitions=[moving])])

    cluster.on(DescribeConfigsRequest, configs)
    cluster.on(ListPartitionReassignmentsRequest, reassignments)


B = f"Topic: b\tTopicId: {uuid_to_text(TOPIC_ID)}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: retention.ms=1"


def test_topics_are_described_with_their_configs_and_moves(cluster: AdminCluster, command: Command) -> None:
    describable(cluster)
    lines = [
        B,
        "\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: b\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2,3\t"
        "Adding Replicas: 3\tRemoving Replicas: \tElr: N/A\tLastKnownElr: N/A",
    ]
    assert command(main, "--describe", "--topic", "b") == (0, lines, "")
    zero = uuid_to_text(bytes(16))
    assert command(main, "--describe", "--topic", "b", "--topic-id", zero)[1] == lines
    assert command(main, "--describe", "--topic", "b", "--topics-with-overrides")[1] == [B]
    assert len(command(main, "--describe", "--exclude-internal")[1]) == 5
    # Only topic a has fewer replicas than min.insync.replicas.
    (line,) = command(main, "--describe", "--exclude-internal", "--under-min-isr-partitions")[1]
    assert line.startswith("\tTopic: a\tPartition: 0\t")


def test_a_topic_is_described_by_its_id(cluster: AdminCluster, command: Command) -> None:
    describable(cluster)
    cluster.topics["a"].topic_id = b"another topic id"
    another = uuid_to_text(b"another topic id")
    assert command(main, "--describe", "--topic-id", another, "--topic", "b")[1][0].startswith("Topic: a\t")
    unknown = uuid_to_text(b"the id of nobody")
    status, _, error = command(main, "--describe", "--topic-id", unknown)
    assert (status, error) == (1, f"odradek: TopicId '{unknown}' does not exist as expected\n")
    assert command(main, "--describe", "--topic-id", unknown, "--if-exists") == (0, [], "")


def test_configs_that_cannot_be_read_are_an_error(cluster: AdminCluster, command: Command) -> None:
    describable(cluster, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    status, lines, error = command(main, "--describe", "--topic", "b")
    assert (status, lines) == (1, [])
    assert error.startswith("odradek: Configs of b: ")


def test_a_topic_is_created_by_the_controller_with_the_brokers_defaults(
    cluster: AdminCluster, command: Command
) -> None:
    create(cluster)
    assert command(main, "--create", "--topic", "new") == (0, ["Created topic new."], "")
    ((broker_id, request),) = cluster.requests(CreateTopicsRequest)
    assert broker_id == 2
    assert request.topics == [CreatableTopic(name="new", num_partitions=-1, replication_factor=-1)]


def test_a_topic_is_created_as_it_is_described(cluster: AdminCluster, command: Command) -> None:
    create(cluster)
    given = ("--partitions", "3", "--replication-factor", "2", "--config", "a=b=c", "--config", "d=")
    command(main, "--create", "--topic", "new", *given)
    assert command(main, "--create", "--topic", "placed.here", "--replica-assignment", "0:1,1:2")[1] == [
        "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
        "avoid issues it is best to use either, but not both.",
        "Created topic placed.here.",
    ]
    (_, first), (_, second) = cluster.requests(CreateTopicsRequest)
    configs = [CreatableTopicConfig(name="a", value="b=c"), CreatableTopicConfig(name="d", value="")]
    assert first.topics == [
        CreatableTopic(name="new", num_partitions=3, replication_factor=2, assignments=[], configs=configs)
    ]
    assert second.topics[0].assignments == [
        CreatableReplicaAssignment(partition_index=0, broker_ids=[0, 1]),
        CreatableReplicaAssignment(partition_index=1, broker_ids=[1, 2]),
    ]


def test_a_topic_that_exists(cluster: AdminCluster, command: Command) -> None:
    create(cluster, ErrorCode.TOPIC_ALREADY_EXISTS)
    status, lines, error = command(main, "--create", "--topic", "a")
    assert (status, lines) == (1, [])
    assert error == "odradek: Error while executing topic command: Topic with this name already exists.\n"
    assert command(main, "--create", "--topic", "a", "--if-not-exists") == (0, [], "")


def test_partitions_are_added_to_every_topic_that_is_meant(cluster: AdminCluster, command: Command) -> None:
    def answer(broker_id: int, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        assert broker_id == 2
        return CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name=t.name) for t in request.topics])

    cluster.on(CreatePartitionsRequest, answer)
    assert command(main, "--alter", "--topic", "a|b", "--partitions", "3") == (0, [], "")
    command(main, "--alter", "--topic", "b", "--partitions", "3", "--replica-assignment", "1:2,2:3,3:1")
    (_, first), (_, second) = cluster.requests(CreatePartitionsRequest)
    assert first.topics == [CreatePartitionsTopic(name=n, count=3, assignments=None) for n in ("a", "b")]
    assert second.topics[0].assignments == [CreatePartitionsAssignment(broker_ids=[3, 1])]


def test_topics_are_deleted_by_name(cluster: AdminCluster, command: Command) -> None:
    def answer(broker_id: int, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        results = [DeletableTopicResult(name=state.name) for state in request.topics]
        results[-1].error_code = ErrorCode.TOPIC_DELETION_DISABLED
        return DeleteTopicsResponse(responses=results)

    cluster.on(DeleteTopicsRequest, answer)
    status, _, error = command(main, "--delete", "--topic", "a,b")
    assert (status, error) == (1, "odradek: Error while deleting topic b: Topic deletion is disabled.\n")
    ((_, request),) = cluster.requests(DeleteTopicsRequest)
    assert [state.name for state in request.topics] == ["a", "b"]


@pytest.mark.parametrize("action", ["--describe", "--delete", "--alter"])
def test_no_such_topic(command: Command, action: str) -> None:
    more = ("--partitions", "2") if action == "--alter" else ()
    status, _, error = command(main, action, "--topic", "nope", *more)
    assert (status, error) == (1, "odradek: Topic 'nope' does not exist as expected\n")
    assert command(main, action, "--topic", "nope", "--if-exists", *more) == (0, [], "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--list", "--describe"],
        ["--create"],
        ["--delete"],
        ["--alter", "--topic", "t"],
        ["--create", "--topic", "t", "--partitions", "0"],
        ["--create", "--topic", "t", "--replication-factor", "0"],
        ["--create", "--topic", "t", "--replication-factor", "32768"],
        ["--create", "--topic", "t", "--config", "x"],
        ["--create", "--topic", "t", "--replica-assignment", "1:1"],
        ["--create", "--topic", "t", "--replica-assignment", "1:2,3"],
        ["--create", "--topic", "t", "--replica-assignment", "x"],
        ["--create", "--topic", "t", "--replica-assignment", "1", "--partitions", "1"],
        ["--create", "--topic", "t", "--if-exists"],
        ["--create", "--topic", "t", "--exclude-internal"],
        ["--delete", "--topic", "t", "--if-not-exists"],
        ["--delete", "--topic", "t", "--partitions", "1"],
        ["--alter", "--topic", "t", "--partitions", "1", "--config", "a=b"],
        ["--alter", "--topic", "t", "--partitions", "1", "--replication-factor", "1"],
        ["--list", "--under-replicated-partitions"],
        ["--list", "--topic-id", uuid_to_text(TOPIC_ID)],
        ["--describe", "--topic-id", "x"],
        ["--describe", "--if-exists"],
        ["--describe", "--topics-with-overrides", "--unavailable-partitions"],
    ],
)
def test_usage(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(main, *arguments)
    assert ended.value.code == 2


def test_topics_are_tables_on_a_terminal_and_json_for_programs(cluster: AdminCluster, command: Command) -> None:
    describable(cluster)
    _, lines, _ = command(main, "--describe", "--topic", "b", "--table")
    assert lines[0].startswith("Topic: b  TopicId: ")
    assert [line.split() for line in lines[1:]] == [
        ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "ADDING", "REPLICAS", "REMOVING", "REPLICAS"],
        ["b", "0", "1", "1,2", "1,2"],
        ["b", "1", "2", "2,3", "2,3", "3"],
    ]
    (found,) = json.loads("".join(command(main, "--describe", "--topic", "b", "--json")[1]))
    assert (found["topic"], found["topic_id"], found["configs"]) == ("b", uuid_to_text(TOPIC_ID), {"retention.ms": "1"})
    assert found["partitions"][1] == {
        "partition": 1,
        "leader": 2,
        "replicas": [2, 3],
        "isr": [2, 3],
        "adding_replicas": [3],
        "removing_replicas": [],
    }
    assert json.loads("".join(command(main, "--list", "--topic", "a", "--json")[1])) == [{"topic": "a"}]
