"""The metrics of kafka_exporter: topics, offsets and the lag of consumer groups.

kafka_exporter publishes the figures of a whole cluster. Here each figure is published by one broker, so that sums over
the brokers are right: those of the cluster by the active controller, those of a partition by its leader, those of a
group by its coordinator. The lag of a partition that the coordinator does not host is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.metrics.family import Family, Sample, gauge, gauges
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.broker.partition.partition import Partition
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.protocol.topic_partition import TopicPartition

PARTITION: Final = ("topic", "partition")
GROUP: Final = ("consumergroup", "topic", "partition")


def _brokers(view: View) -> int:
    controllership = view.services.controller.controllership
    return 0 if controllership is None else len(controllership.context.live_broker_ids)


def _topic_partitions(view: View) -> Iterator[Sample]:
    controllership = view.services.controller.controllership
    if controllership is None or len(controllership.context.all_topics) > view.sources.limits.topics:
        return
    for topic in sorted(controllership.context.all_topics):
        yield labelled(topic=topic), controllership.context.partition_count_of(topic)


def _of_leaders(name: str, description: str, read: Callable[[Partition], float | None]) -> Family:
    def samples(view: View) -> Iterator[Sample | None]:
        for labels, partition in view.labelled_partitions:
            value = read(partition) if partition.is_leader else None
            yield None if value is None else (labels, value)

    return gauges(f"kafka_topic_partition_{name}", PARTITION, description, samples)


def _is_preferred(view: View) -> Iterator[Sample | None]:
    cache = view.services.metadata_cache
    for labels, partition in view.labelled_partitions:
        found = partition.topic_partition
        state = cache.partition_state(found.topic, found.partition) if partition.is_leader else None
        yield (labels, int(state.replicas[:1] == [partition.leader_id])) if state is not None else None


# Groups


def _committed(view: View) -> Iterator[tuple[GroupMetadata, TopicPartition, int] | None]:
    """The committed offsets of all groups, unless there are too many groups."""
    if len(view.groups) > view.sources.limits.groups:
        return
    for group in view.groups:
        yield None
        for found, offset in list(group.offsets.items()):
            yield group, found, offset.offset


def _lag(view: View, found: TopicPartition, offset: int) -> int | None:
    partition = view.services.replica_manager.hosted(found)
    if partition is None or partition.log is None:
        return None
    return max(0, partition.log.high_watermark - offset)


def _offsets(view: View) -> Iterator[Sample | None]:
    for one in _committed(view):
        if one is None:
            yield None
            continue
        group, found, offset = one
        yield labelled(consumergroup=group.group_id, topic=found.topic, partition=found.partition), offset


def _lags(view: View) -> Iterator[Sample | None]:
    for one in _committed(view):
        if one is None:
            yield None
            continue
        group, found, offset = one
        lag = _lag(view, found, offset)
        labels = labelled(consumergroup=group.group_id, topic=found.topic, partition=found.partition)
        yield None if lag is None else (labels, lag)


def _sums(value: Callable[[View, TopicPartition, int], int | None]) -> Callable[[View], Iterator[Sample | None]]:
    """One sample for each topic of a group."""

    def read(view: View) -> Iterator[Sample | None]:
        sums: Counter[tuple[str, str]] = Counter()
        for one in _committed(view):
            yield None
            if one is not None:
                group, found, offset = one
                part = value(view, found, offset)
                if part is not None:
                    sums[group.group_id, found.topic] += part
        for (group_id, topic), total in sums.items():
            yield labelled(consumergroup=group_id, topic=topic), total

    return read


def _members(view: View) -> Iterator[Sample | None]:
    if len(view.groups) > view.sources.limits.groups:
        return
    for group in view.groups:
        yield labelled(consumergroup=group.group_id), len(group.members)


EXPORTER_FAMILIES: Final = (
    gauge("kafka_brokers", "Brokers of the cluster; 0 on all but the active controller.", _brokers),
    gauges("kafka_topic_partitions", ("topic",), "Partitions of a topic, by the active controller.", _topic_partitions),
    _of_leaders(
        "current_offset",
        "The offset after the last record that consumers can read.",
        lambda one: None if one.log is None else one.log.high_watermark,
    ),
    _of_leaders(
        "oldest_offset", "The first offset.", lambda one: None if one.log is None else one.log.log_start_offset
    ),
    _of_leaders("in_sync_replica", "Replicas in sync.", lambda one: len(one.in_sync.isr)),
    _of_leaders("replicas", "Replicas.", lambda one: len(one.in_sync.replicas) + 1),
    _of_leaders("leader", "The id of the leader.", lambda one: one.leader_id),
    _of_leaders(
        "under_replicated_partition",
        "1 if a replica is not in sync, also one that a reassignment adds.",
        lambda one: len(one.in_sync.isr) < len(one.in_sync.replicas) + 1,
    ),
    gauges(
        "kafka_topic_partition_leader_is_preferred",
        PARTITION,
        "1 if the first replica is the leader.",
        _is_preferred,
    ),
    gauges("kafka_consumergroup_current_offset", GROUP, "The committed offset of a group.", _offsets),
    gauges(
        "kafka_consumergroup_current_offset_sum",
        GROUP[:2],
        "The committed offsets of a group in a topic, added up.",
        _sums(lambda view, found, offset: offset),
    ),
    gauges("kafka_consumergroup_lag", GROUP, "Records that a group has not committed yet.", _lags),
    gauges("kafka_consumergroup_lag_sum", GROUP[:2], "The lag of a group in a topic.", _sums(_lag)),
    gauges("kafka_consumergroup_members", ("consumergroup",), "Members of a group.", _members),
)
