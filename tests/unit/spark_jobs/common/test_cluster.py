"""What a job asks a cluster, against one whose answers the test sets."""

from __future__ import annotations

import pytest

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.common.cluster import Cluster, Placement
from spark_jobs.common.job import JobError
from spark_jobs.common.kafka_options import KafkaConnection
from tests.support.clusters.admin_cluster import AdminCluster, topic
from tests.support.clusters.admin_groups import LOG_END, LOG_START, RECORD_TIME_MS

ASKED = Cluster(KafkaConnection(bootstrap_servers="host:9001"))


def test_the_partitions_of_topics_that_are_there(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [3]), topic("u", [2]))
    assert ASKED.partition_counts(["u", "gone"]) == {"u": 1}
    assert ASKED.check_topics(("u", "t")) == {"u": 1, "t": 2}
    assert all(not request.allow_auto_topic_creation for _, request in cluster.requests(MetadataRequest))
    assert ASKED.partition_counts(None) == {"t": 2, "u": 1}
    cluster.asked.clear()
    assert ASKED.partition_counts([]) == {}
    assert cluster.asked == []


def test_what_is_not_there_or_may_not_be_seen_is_one_line(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1]), MetadataResponseTopic(name="x", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(JobError, match=r"^there is no topic a on host:9001: create it first, or check the name$"):
        ASKED.check_topics(["t", "a"])
    with pytest.raises(JobError, match=r"^there are no topics a, b on host:9001: create them first"):
        ASKED.check_topics(["b", "t", "a"])
    with pytest.raises(JobError, match=r"^no right to describe the topic x on host:9001$"):
        ASKED.check_topics(["t", "x"])
    cluster.unreachable.add(1)
    with pytest.raises(JobError, match=r"^no bootstrap server answers: broker 1 is down$"):
        ASKED.check_topics(["t"])


def test_brokers_replicas_and_what_moves(cluster: AdminCluster) -> None:
    cluster.racks[2] = "r"
    cluster.has(topic("t", [3, 1], [1]), topic("u", [2]))
    moving = OngoingTopicReassignment(
        name="t", partitions=[OngoingPartitionReassignment(partition_index=1, replicas=[1, 2], adding_replicas=[2])]
    )
    cluster.on(ListPartitionReassignmentsRequest, lambda *_: ListPartitionReassignmentsResponse(topics=[moving]))
    assert ASKED.placement() == Placement(
        cluster_id="cluster",
        racks={1: None, 2: "r", 3: None},
        replicas={TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (1,), TopicPartition("u", 0): (2,)},
        reassigning=frozenset([TopicPartition("t", 1)]),
    )


@pytest.mark.parametrize("read_committed", [False, True])
def test_the_ranges_of_logs(cluster: AdminCluster, read_committed: bool) -> None:
    cluster.has(topic("t", [1], [3]))
    whole = ASKED.log_ranges({"t": 2}, read_committed=read_committed)
    assert whole == dict.fromkeys([TopicPartition("t", 0), TopicPartition("t", 1)], (LOG_START, LOG_END))
    levels = {request.isolation_level for _, request in cluster.requests(ListOffsetsRequest)}
    assert levels == ({1} if read_committed else {0})
    assert ASKED.log_ranges({"t": 1}, RECORD_TIME_MS) == {("t", 0): (50, LOG_END)}
    assert ASKED.log_ranges({"t": 1}, RECORD_TIME_MS + 1) == {("t", 0): (LOG_END, LOG_END)}
    assert ASKED.log_ranges({}) == {}


def test_a_leader_that_refuses_is_one_line(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1]))

    def refuse(_broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = [ListOffsetsPartitionResponse(partition_index=0, error_code=refused)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)])

    cluster.on(ListOffsetsRequest, refuse)
    with pytest.raises(JobError, match=r"^Offset of t-0: Topic authorization failed\.$"):
        ASKED.log_ranges({"t": 1})
    partition = TopicPartition("t", 0)
    (found,) = ASKED.offsets([{partition: -1}])  # a sample of lag goes on without it
    assert found[partition].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_the_configs_of_topics(cluster: AdminCluster) -> None:
    def answer(_broker_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_name=resource.resource_name,
                    error_code=ErrorCode.NONE if resource.resource_name == "t" else ErrorCode.INVALID_TOPIC_EXCEPTION,
                    configs=[DescribeConfigsResourceResult(name="retention.ms", value="5")],
                )
                for resource in request.resources
            ]
        )

    cluster.on(DescribeConfigsRequest, answer)
    assert ASKED.topic_configs(["t", "x"]) == {"t": {"retention.ms": "5"}}
    assert ASKED.topic_configs([]) == {}


async def at_once(_client: AdminClient) -> None:
    """In place of `AdminClient.back_off`."""


def test_a_topic_is_created_when_each_partition_has_a_leader(
    cluster: AdminCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdminClient, "back_off", at_once)
    leaderless = MetadataResponsePartition(partition_index=0, leader_id=-1)
    known = [MetadataResponseTopic(name="new", partitions=[leaderless]), topic("new", [1], [2])]
    ask_metadata = cluster.answers[MetadataRequest]

    def create(_broker_id: int, request: CreateTopicsRequest) -> CreateTopicsResponse:
        (new,) = request.topics
        assert (new.num_partitions, new.replication_factor) == (2, -1)
        assert [(config.name, config.value) for config in new.configs] == [("retention.ms", "-1")]
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=new.name)])

    def metadata(broker_id: int, request: MetadataRequest) -> object:
        if request.topics:
            cluster.has(known.pop(0))
        return ask_metadata(broker_id, request)

    cluster.on(CreateTopicsRequest, create)
    cluster.answers[MetadataRequest] = metadata  # type: ignore[assignment]
    assert ASKED.create_topic("new", 2, {"retention.ms": "-1"}) == 2
    assert known == []


def test_a_topic_that_cannot_be_created_is_one_line(cluster: AdminCluster) -> None:
    refused = CreatableTopicResult(name="t", error_code=ErrorCode.INVALID_CONFIG, error_message="no such config")
    cluster.on(CreateTopicsRequest, lambda *_: CreateTopicsResponse(topics=[refused]))
    with pytest.raises(JobError, match=r"^the topic t cannot be created: no such config$"):
        ASKED.create_topic("t", 1, {})
