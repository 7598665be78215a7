from __future__ import annotations

import json

import pytest

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.tools.admin.topics.topics import main
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.errors import ErrorCode
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
from tests.support.clusters.admin_cluster import TOPIC_ID, AdminCluster, Command

pytestmark = pytest.mark.usefixtures("some_topics")


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


def test_topics_are_described_to_a_client_that_may_not_see_the_moves(cluster: AdminCluster, command: Command) -> None:
    describable(cluster)
    shown = command(main, "--describe", "--topic", "a")
    refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def refused(broker_id: int, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_code=refusal, error_message=None)

    def unknown(broker_id: int, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        raise VersionMismatch("No common version")

    for answer in (refused, unknown):
        cluster.on(ListPartitionReassignmentsRequest, answer)
        assert command(main, "--describe", "--topic", "a") == shown
    refusal = ErrorCode.UNKNOWN_SERVER_ERROR
    cluster.on(ListPartitionReassignmentsRequest, refused)
    status, _, error = command(main, "--describe", "--topic", "a")
    assert (status, error.startswith("odradek: Listing reassignments: ")) == (1, True)
