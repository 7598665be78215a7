from __future__ import annotations

import pytest

from odradek.broker.tools.admin.topics.topic_descriptions import describe
from odradek.broker.tools.admin.topics.topic_selection import OVERRIDES
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult
from odradek.protocol.messages.list_partition_reassignments import OngoingPartitionReassignment
from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.topic_partition import TopicPartition

LIVE = {1, 2, 3}


def partition(index: int, leader: int, replicas: list[int], isr: list[int]) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=isr)


def topic(*partitions: MetadataResponsePartition) -> MetadataResponseTopic:
    return MetadataResponseTopic(name="t", partitions=list(partitions))


def config(name: str, value: str, source: int = 5) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=value, config_source=source)


MIN_ISR = config("min.insync.replicas", "2")


def test_configs_that_are_not_the_default_are_printed() -> None:
    configs = [config("a", "1", 1), MIN_ISR, config("b", "2", 4)]
    lines = list(describe(topic(partition(1, 2, [2], [2]), partition(0, -1, [1], [1])), configs, {}, LIVE))
    assert lines == [
        "Topic: t\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: a=1,b=2",
        "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: 1\tElr: N/A\tLastKnownElr: N/A",
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2\tIsr: 2\tElr: N/A\tLastKnownElr: N/A",
    ]
    assert list(describe(topic(partition(0, 1, [1], [1])), configs, {}, LIVE, [OVERRIDES])) == [
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: a=1,b=2"
    ]
    assert list(describe(topic(partition(0, 1, [1], [1])), [MIN_ISR], {}, LIVE, [OVERRIDES])) == []


def test_configs_come_in_the_order_of_kafkas_hash_table() -> None:
    given = ("cleanup.policy", "min.insync.replicas", "retention.ms", "segment.bytes")
    (head, _) = describe(topic(partition(0, 1, [1], [1])), [config(name, "1", 1) for name in given], {}, LIVE)
    assert head.endswith("Configs: cleanup.policy=1,min.insync.replicas=1,segment.bytes=1,retention.ms=1")


@pytest.mark.parametrize(
    ("report", "reported"),
    [
        ("under_replicated_partitions", {1, 2, 3}),
        ("unavailable_partitions", {3, 4}),
        ("under_min_isr_partitions", {2, 3}),
        ("at_min_isr_partitions", {1}),
    ],
)
def test_reports_are_of_partitions_that_lack_something(report: str, reported: set[int]) -> None:
    described = topic(
        partition(0, 1, [1, 2, 3], [1, 2, 3]),
        partition(1, 1, [1, 2, 3], [1, 2]),
        partition(2, 1, [1, 2, 3], [1]),
        partition(3, -1, [1, 2, 3], [2]),
        partition(4, 9, [9, 1, 2], [9, 1, 2]),
    )
    lines = list(describe(described, [MIN_ISR], {}, LIVE, [report]))
    assert {int(line.split("\t")[2].removeprefix("Partition: ")) for line in lines} == reported
    both = list(describe(described, [MIN_ISR], {}, LIVE, [report, "unavailable_partitions"]))
    assert len(both) == len(reported | {3, 4})


def test_replicas_that_are_being_added_are_not_missing() -> None:
    moving = OngoingPartitionReassignment(
        partition_index=0, replicas=[4, 5, 1, 2], adding_replicas=[4, 5], removing_replicas=[1, 2]
    )
    ongoing = {TopicPartition("t", 0): moving}
    described = topic(partition(0, 1, [4, 5, 1, 2], [1, 2]))
    head, line = describe(described, [MIN_ISR], ongoing, LIVE)
    assert "\tReplicationFactor: 2\t" in head
    assert line == (
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 4,5,1,2\tIsr: 1,2\tAdding Replicas: 4,5\t"
        "Removing Replicas: 1,2\tElr: N/A\tLastKnownElr: N/A"
    )
    assert list(describe(described, [MIN_ISR], ongoing, LIVE, ["under_replicated_partitions"])) == []
    # The move was over when the partition was asked about.
    over = topic(partition(0, 4, [6, 7], [6]))
    assert len(list(describe(over, [MIN_ISR], ongoing, LIVE, ["under_replicated_partitions"]))) == 1
