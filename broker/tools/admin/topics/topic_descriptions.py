"""The lines of `odradek topics --describe`: one for a topic and one for each of its partitions. With a report, only the
lines of the partitions or topics that it selects.

Replicas that a reassignment adds do not count as missing, nor in the replication factor, until it has ended.

Kafka: TopicCommand.TopicDescription, TopicCommand.PartitionDescription.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.admin.cluster.cluster import describe_partition, ids_text
from odradek.broker.tools.admin.topics.topic_selection import OVERRIDES
from odradek.broker.tools.hash_order import order_of_names
from odradek.controller.model.config_codes import ConfigSource
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_to_text
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import Ongoing
    from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult
    from odradek.protocol.messages.list_partition_reassignments import OngoingPartitionReassignment
    from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

MIN_ISR: Final = "min.insync.replicas"


class _Described(NamedTuple):
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

    def facts(self) -> dict[str, object]:
        moving = self.reassignment
        return {
            "partition": self.partition.partition_index,
            "leader": self.partition.leader_id if self.has_leader else None,
            "replicas": self.partition.replica_nodes,
            "isr": self.partition.isr_nodes,
            "adding_replicas": [] if moving is None else moving.adding_replicas,
            "removing_replicas": [] if moving is None else moving.removing_replicas,
        }

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


def facts(
    topic: MetadataResponseTopic,
    configs: Sequence[DescribeConfigsResourceResult],
    ongoing: Ongoing,
    live_brokers: Collection[int],
    reports: Collection[str] = (),
) -> Iterator[dict[str, object]]:
    """What `describe` says of a topic, for programs: one object with the partitions that the reports select."""
    values = {config.name: config.value for config in configs}
    partitions = _selected(_described(topic, values, ongoing, live_brokers), reports)
    changed = _changed(configs)
    if partitions or not reports or (OVERRIDES in reports and changed):
        yield {
            "topic": topic.name,
            "topic_id": None if topic.topic_id == ZERO_UUID else uuid_to_text(topic.topic_id),
            "is_internal": topic.is_internal,
            "configs": {key: values[key] for key in changed},
            "partitions": [found.facts() for found in partitions],
        }


def partition_rows(
    topic: MetadataResponseTopic,
    configs: Sequence[DescribeConfigsResourceResult],
    ongoing: Ongoing,
    live_brokers: Collection[int],
    reports: Collection[str] = (),
) -> Iterator[dict[str, object]]:
    """The selected partitions, for a table."""
    values = {config.name: config.value for config in configs}
    for found in _selected(_described(topic, values, ongoing, live_brokers), reports):
        yield {"topic": topic.name, **found.facts()}


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
    changed = [f"{key}={values[key]}" for key in _changed(configs)]
    partitions = _described(topic, values, ongoing, live_brokers)
    if not reports or (OVERRIDES in reports and changed):
        topic_id = "" if topic.topic_id == ZERO_UUID else f"\tTopicId: {uuid_to_text(topic.topic_id)}"
        yield (
            f"Topic: {name}{topic_id}\tPartitionCount: {len(partitions)}\t"
            f"ReplicationFactor: {partitions[0].replication_factor}\tConfigs: {','.join(changed)}"
        )
    for found in _selected(partitions, reports):
        yield found.line(name)


def _changed(configs: Sequence[DescribeConfigsResourceResult]) -> list[str]:
    """The configs that are not the default, in the order of Kafka's tool: that of a hash table of all configs."""
    default = {config.name for config in configs if config.config_source == ConfigSource.DEFAULT_CONFIG}
    return [name for name in order_of_names(config.name for config in configs) if name not in default]


def _described(
    topic: MetadataResponseTopic,
    configs: Mapping[str, str | None],
    ongoing: Ongoing,
    live_brokers: Collection[int],
) -> list[_Described]:
    return [
        _Described(
            partition, ongoing.get(TopicPartition(topic.name or "", partition.partition_index)), configs, live_brokers
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]


def _selected(partitions: Sequence[_Described], reports: Collection[str]) -> list[_Described]:
    selects = [is_such for report, is_such in PARTITION_REPORTS.items() if report in reports]
    return [found for found in partitions if not reports or any(is_such(found) for is_such in selects)]
