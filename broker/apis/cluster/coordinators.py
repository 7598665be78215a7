"""Which coordinator lives in a partition, if any: it moves with the partition's leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.coordinator.group.coordinator import GroupCoordinator
    from odradek.coordinator.transaction.coordinator import TransactionCoordinator
    from odradek.protocol.topic_partition import TopicPartition


def coordinator_of(
    broker: Services, topic_partition: TopicPartition
) -> GroupCoordinator | TransactionCoordinator | None:
    """Who is to hear that this broker leads the partition, or does so no more."""
    if topic_partition.topic == GROUP_METADATA_TOPIC:
        return broker.group_coordinator
    return broker.transaction_coordinator if topic_partition.topic == TRANSACTION_STATE_TOPIC else None
