"""The partition states of a LeaderAndIsr request of any version.

Kafka: LeaderAndIsrRequest.partitionStates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.protocol.codec.primitives import ZERO_UUID

if TYPE_CHECKING:
    from odradek.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest


def partition_states(
    request: LeaderAndIsrRequest,
) -> Iterator[tuple[str, bytes | None, LeaderAndIsrPartitionState]]:
    """Topic, topic id (None without one) and state: grouped by topic since v2, a flat list before."""
    for state in request.ungrouped_partition_states:
        yield state.topic_name, None, state
    for topic in request.topic_states:
        topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
        for state in topic.partition_states:
            yield topic.topic_name, topic_id, state
