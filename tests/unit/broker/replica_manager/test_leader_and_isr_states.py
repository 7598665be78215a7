"""Both forms of a LeaderAndIsr request give the same states."""

from __future__ import annotations

from odradek.broker.replica_manager.leader_and_isr_states import partition_states
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)

TOPIC_ID = b"\x01" * 16


def test_states_are_flat_before_version_two() -> None:
    state = LeaderAndIsrPartitionState(topic_name="t", partition_index=3)
    assert list(partition_states(LeaderAndIsrRequest(ungrouped_partition_states=[state]))) == [("t", None, state)]


def test_states_are_grouped_by_topic_since_and_have_an_id_unless_it_is_zero() -> None:
    first, second = LeaderAndIsrPartitionState(partition_index=0), LeaderAndIsrPartitionState(partition_index=1)
    request = LeaderAndIsrRequest(
        topic_states=[
            LeaderAndIsrTopicState(topic_name="a", topic_id=TOPIC_ID, partition_states=[first]),
            LeaderAndIsrTopicState(topic_name="b", partition_states=[second]),
        ]
    )
    assert list(partition_states(request)) == [("a", TOPIC_ID, first), ("b", None, second)]
