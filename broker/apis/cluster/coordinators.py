"""The coordinator whose state a partition holds. A coordinator moves with the leader of its partition.

Kafka: RequestHandlerHelper.onLeadershipChange.
"""

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
    """The coordinator to notify when this broker begins or ceases to lead the partition; None for other topics."""
    if topic_partition.topic == GROUP_METADATA_TOPIC:
        return broker.group_coordinator
    return broker.transaction_coordinator if topic_partition.topic == TRANSACTION_STATE_TOPIC else None
