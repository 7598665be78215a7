"""`ClusterClient.placement`, against a cluster whose answers the test sets."""

from __future__ import annotations

import pytest

from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.common.cluster_client import ClusterClient, Placement
from spark_jobs.common.kafka_options import KafkaConnection
from tests.support.clusters.admin_cluster import AdminCluster, topic


def test_brokers_replicas_and_what_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = AdminCluster()
    monkeypatch.setattr("odradek.broker.tools.admin.client.admin_client.SocketLink", cluster.make_link)
    cluster.racks[2] = "r"
    cluster.has(topic("t", [3, 1], [1]), topic("u", [2]))
    moving = OngoingTopicReassignment(
        name="t", partitions=[OngoingPartitionReassignment(partition_index=1, replicas=[1, 2], adding_replicas=[2])]
    )
    cluster.on(ListPartitionReassignmentsRequest, lambda *_: ListPartitionReassignmentsResponse(topics=[moving]))
    assert ClusterClient(KafkaConnection(bootstrap_servers="host:9001")).placement() == Placement(
        cluster_id="cluster",
        racks={1: None, 2: "r", 3: None},
        replicas={TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (1,), TopicPartition("u", 0): (2,)},
        reassigning=frozenset([TopicPartition("t", 1)]),
    )
