"""The lines of `odradek topics --describe`: one for a topic and one for each of its partitions. With a report, only the
lines of the partitions or topics that it selects.

Replicas that a reassignment adds do not count as missing, nor in the replication factor, until it has ended.

Kafka: TopicCommand.TopicDescription, TopicCommand.PartitionDescription.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.cluster import describe_partition, ids_text
from odradek.broker.tools.hash_order import order_of_names
from odradek.controller.model.config_source import ConfigSource
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_to_text
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.admin_client import Ongoing
    from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult
    from odradek.protocol.messages.list_partition_reassignments import OngoingPartitionReassignment
    from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

MIN_ISR: Final = "min.insync.replicas"
OVERRIDES: Final = "topics_with_overrides"
"""This report selects topics; the others select partitions."""


@dataclass(frozen=True, slots=True)
class _Described:
    """A partition and the values that the reports compare it with."""

    partition: MetadataResponsePartition
    reassignment: OngoingPartitionReassignment | None
    configs: Mapping[str, str | None]
    live_brokers: Collection[int]

    @property
    def has_leader(self) -> bool:
        return self.partition.leader_id >= 0

    @property
    def in_sync(self) -> int:
        return len(self.partition.isr_nodes)

    @property
    def min_isr(self) -> int:
        return int(self.configs[MIN_ISR] or "")

    @property
    def replication_factor(self) -> int:
        moving = self.reassignment
        # The reassignment may have ended between the two responses.
        if moving is None or not {*moving.adding_replicas, *moving.removing_replicas} & {*self.partition.replica_nodes}:
            return len(self.partition.replica_nodes)
        return len(moving.replicas) - len(moving.adding_replicas)

    def line(self, topic: str) -> str:
        moving = ""
        if self.reassignment is not None:
            moving = (
                f"\tAdding Replicas: {ids_text(self.reassignment.adding_replicas)}"
                f"\tRemoving Replicas: {ids_text(self.reassignment.removing_replicas)}"
            )
        return f"{describe_partition(topic, self.partition)}{moving}\tElr: N/A\tLastKnownElr: N/A"


PARTITION_REPORTS: Final[Mapping[str, Callable[[_Described], bool]]] = {
    "under_replicated_partitions": lambda found: found.in_sync < found.replication_factor,
    "unavailable_partitions": lambda found: found.partition.leader_id not in found.live_brokers,
    "under_min_isr_partitions": lambda found: not found.has_leader or found.in_sync < found.min_isr,
    "at_min_isr_partitions": lambda found: found.in_sync == found.min_isr,
}


def describe(
    topic: MetadataResponseTopic,
    configs: Sequence[DescribeConfigsResourceResult],
    ongoing: Ongoing,
    live_brokers: Collection[int],
    reports: Collection[str] = (),
) -> Iterator[str]:
    """The lines for a topic. Of several reports on partitions, one has to select a partition."""
    name = topic.name or ""
    values = {config.name: config.value for config in configs}
    default = {config.name for config in configs if config.config_source == ConfigSource.DEFAULT_CONFIG}
    # Kafka's tool prints them in the order of a hash table of all configs.
    changed = [f"{key}={values[key]}" for key in order_of_names(values) if key not in default]
    partitions = [
        _Described(partition, ongoing.get(TopicPartition(name, partition.partition_index)), values, live_brokers)
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]
    if not reports or (OVERRIDES in reports and changed):
        topic_id = "" if topic.topic_id == ZERO_UUID else f"\tTopicId: {uuid_to_text(topic.topic_id)}"
        yield (
            f"Topic: {name}{topic_id}\tPartitionCount: {len(partitions)}\t"
            f"ReplicationFactor: {partitions[0].replication_factor}\tConfigs: {','.join(changed)}"
        )
    for found in partitions:
        if not reports or any(is_such(found) for report, is_such in PARTITION_REPORTS.items() if report in reports):
            yield found.line(name)
