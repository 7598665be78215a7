"""Two samples to figures: rates between them, lag, sizes. Pure.

Records a second come from high watermarks, bytes a second from the sizes of logs (after compression; what is deleted in
between is not counted), and what a group reads from its committed offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.top.sample import GroupSample, Sample

Row = dict[str, str | int | float | bool | None]
"""Facts by name, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a frame shows."""

    summary: Row
    brokers: list[Row]
    topics: list[Row]
    groups: list[Row]

    def as_json(self) -> dict[str, object]:
        """The frame for programs."""
        return {**self.summary, "brokers": self.brokers, "topics": self.topics, "groups": self.groups}


def figures(before: Sample, after: Sample) -> Figures:
    """The figures of `after`, with rates since `before`."""
    seconds = (after.monotonic_ms - before.monotonic_ms) / 1000
    records = _rates(before.ends, after.ends, seconds)
    leaders = {
        TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
        for topic in after.metadata.topics
        for partition in topic.partitions
    }
    sizes = {key: after.sizes.get(leader, {}).get(key, 0) for key, leader in leaders.items()}
    earlier = {key: before.sizes.get(leader, {}).get(key) for key, leader in leaders.items()}
    size_rates = _rates({key: size for key, size in earlier.items() if size is not None}, sizes, seconds)
    brokers = _brokers(after, leaders, records, size_rates)
    topics = list(_topics(after, records, size_rates, sizes))
    groups = list(_groups(before, after, seconds))
    summary: Row = {
        "time_ms": after.time_ms,
        "cluster": after.metadata.cluster_id,
        "controller": after.metadata.controller_id,
        "seconds": round(seconds, 3),
        "partitions": len(leaders),
        "without_leader": sum(leader < 0 for leader in leaders.values()),
        "under_replicated": sum(int(row["under_replicated"] or 0) for row in topics),
        "records_per_second": _rounded(sum(records.values())),
        "bytes_per_second": _rounded(sum(size_rates.values())),
    }
    return Figures(summary, brokers, topics, groups)


def _rates(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """The growth a second of what is in both."""
    if seconds <= 0:
        return {}
    return {key: max(0, value - before[key]) / seconds for key, value in after.items() if key in before}


def _rounded(rate: float) -> float:
    return round(rate, 1)


def _brokers(
    sample: Sample,
    leaders: Mapping[TopicPartition, int],
    records: Mapping[TopicPartition, float],
    size_rates: Mapping[TopicPartition, float],
) -> list[Row]:
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, leader in leaders.items():
        led[leader].append(key)
    replicas: dict[int, int] = defaultdict(int)
    out_of_sync: dict[int, int] = defaultdict(int)
    for topic in sample.metadata.topics:
        for partition in topic.partitions:
            for broker_id in partition.replica_nodes:
                replicas[broker_id] += 1
                out_of_sync[broker_id] += broker_id not in partition.isr_nodes
    return [
        {
            "broker": node.node_id,
            "address": f"{node.host}:{node.port}",
            "rack": node.rack,
            "controller": node.node_id == sample.metadata.controller_id,
            "leaders": len(led[node.node_id]),
            "replicas": replicas[node.node_id],
            "out_of_sync": out_of_sync[node.node_id],
            "records_per_second": _rounded(sum(records.get(key, 0) for key in led[node.node_id])),
            "bytes_per_second": _rounded(sum(size_rates.get(key, 0) for key in led[node.node_id])),
            "size_bytes": sum(sample.sizes.get(node.node_id, {}).values()),
            "free_bytes": sample.usable_bytes.get(node.node_id),
        }
        for node in sorted(sample.metadata.brokers, key=lambda node: node.node_id)
    ]


def _topics(
    sample: Sample,
    records: Mapping[TopicPartition, float],
    size_rates: Mapping[TopicPartition, float],
    sizes: Mapping[TopicPartition, int],
) -> Iterable[Row]:
    for topic in sorted(sample.metadata.topics, key=lambda topic: topic.name or ""):
        keys = [TopicPartition(topic.name or "", partition.partition_index) for partition in topic.partitions]
        yield {
            "topic": topic.name,
            "internal": topic.is_internal,
            "partitions": len(keys),
            "replicas": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
            "under_replicated": sum(
                len(partition.isr_nodes) < len(partition.replica_nodes) for partition in topic.partitions
            ),
            "records_per_second": _rounded(sum(records.get(key, 0) for key in keys)),
            "bytes_per_second": _rounded(sum(size_rates.get(key, 0) for key in keys)),
            "size_bytes": sum(sizes.get(key, 0) for key in keys),
            "end_offsets": sum(sample.ends.get(key, 0) for key in keys),
        }


def _groups(before: Sample, after: Sample, seconds: float) -> Iterable[Row]:
    earlier = {group.group_id: group.committed for group in before.groups}
    for group in sorted(after.groups, key=lambda group: group.group_id):
        rates = _rates(earlier.get(group.group_id, {}), group.committed, seconds)
        yield {
            "group": group.group_id,
            "state": group.state,
            "members": group.members,
            "coordinator": group.coordinator,
            "topics": len({topic for topic, _ in group.committed}),
            "lag": _lag(group, after.ends),
            "records_per_second": _rounded(sum(rates.values())),
        }


def _lag(group: GroupSample, ends: Mapping[TopicPartition, int]) -> int:
    """Records between the committed offsets and the ends of their partitions."""
    return sum(max(0, ends[key] - offset) for key, offset in group.committed.items() if key in ends)
