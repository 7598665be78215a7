from __future__ import annotations

from odradek.broker.tools.admin.cluster.cluster import main
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic


def test_a_healthy_cluster(cluster: AdminCluster, command: Command) -> None:
    cluster.has(topic("b", [1, 2], [2, 3]), topic("a", [3]))
    assert command(main) == (
        0,
        [
            "Cluster: cluster",
            "Broker: 1\tAddress: host:9001",
            "Broker: 2\tAddress: host:9002\tController",
            "Broker: 3\tAddress: host:9003",
            "Topics: 2\tPartitions: 3\tWithout a leader: 0\tUnder-replicated: 0",
        ],
        "",
    )


def test_partitions_without_a_leader_or_with_replicas_out_of_sync_are_named(
    cluster: AdminCluster, command: Command
) -> None:
    cluster.racks = {1: "north", 3: None}
    cluster.controller_id = -1
    broken = topic("t", [1, 2], [2, 1], [3, 1])
    broken.partitions[0].isr_nodes = [1]
    broken.partitions[1].leader_id, broken.partitions[1].isr_nodes = -1, [2]
    cluster.has(broken)
    _, lines, _ = command(main)
    assert lines == [
        "Cluster: cluster",
        "Broker: 1\tAddress: host:9001\tRack: north",
        "Broker: 3\tAddress: host:9003",
        "Controller: none",
        "Topics: 1\tPartitions: 3\tWithout a leader: 1\tUnder-replicated: 2",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1",
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: 2",
    ]
