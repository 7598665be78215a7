"""Samples of a cluster of two brokers for the tests of `top`."""

from __future__ import annotations

from odradek.broker.tools.top.sample import GroupSample, Sample
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.topic_partition import TopicPartition

A, B, INTERNAL = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("__consumer_offsets", 0)


def partition(index: int, leader: int, replicas: list[int], isr: list[int]) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=isr)


def sample(
    second: float,
    ends: dict[TopicPartition, int],
    sizes: dict[TopicPartition, int],
    committed: dict[TopicPartition, int],
) -> Sample:
    """Broker 1 leads t-0, broker 2 t-1 with a replica of broker 1 that is out of sync."""
    metadata = MetadataResponse(
        cluster_id="cluster",
        controller_id=2,
        brokers=[
            MetadataResponseBroker(node_id=2, host="host", port=9002, rack="r"),
            MetadataResponseBroker(node_id=1, host="host", port=9001),
        ],
        topics=[
            MetadataResponseTopic(name="t", partitions=[partition(0, 1, [1, 2], [1, 2]), partition(1, 2, [2, 1], [2])]),
            MetadataResponseTopic(name="__consumer_offsets", is_internal=True, partitions=[partition(0, -1, [3], [])]),
        ],
    )
    return Sample(
        metadata,
        monotonic_ms=int(1000 * second),
        time_ms=5,
        ends=ends,
        sizes={1: {A: sizes.get(A, 0), B: 7}, 2: {B: sizes.get(B, 0)}},
        usable_bytes={1: 1000},
        groups=[GroupSample("g", 2, "Stable", 3, committed), GroupSample("empty", 1, "Empty", 0)],
    )


BEFORE = sample(10, {A: 100, B: 50}, {A: 1000, B: 500}, {A: 60})
AFTER = sample(12, {A: 300, B: 50}, {A: 5000, B: 400}, {A: 100, B: 40})
