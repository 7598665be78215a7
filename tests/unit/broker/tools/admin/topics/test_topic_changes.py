from __future__ import annotations

import pytest

from odradek.broker.tools.admin.topics.topics import main
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
from tests.support.clusters.admin_cluster import AdminCluster, Command

pytestmark = pytest.mark.usefixtures("some_topics")


def create(cluster: AdminCluster, error: ErrorCode = ErrorCode.NONE) -> None:
    def answer(broker_id: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=found.name, error_code=error) for found in request.topics]
        )

    cluster.on(CreateTopicsRequest, answer)


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
    assert command(main, "--create", "--topic", "placed.here", "--replica-assignment", "0:1:,1:2,")[1] == [
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
