from __future__ import annotations

import pytest

from odradek.controller.model.leader_and_isr import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
)
from odradek.controller.model.reassignment import NO_REPLICAS, ReplicaAssignment
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.context import ControllerContext
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.controller_states import broker

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def context() -> ControllerContext:
    """t-0 on 1 and 2, led by 1; t-1 on 2, led by 2; u-0 on 3 and 1, led by 3, which is down. 2 is shutting down."""
    filled = ControllerContext()
    filled.set_live_brokers({broker(1): 11, broker(2): 12})
    filled.shutting_down_broker_ids.add(2)
    filled.all_topics = {"t", "u"}
    for partition, replicas in ((T0, (1, 2)), (T1, (2,)), (U0, (3, 1))):
        filled.update_assignment(partition, ReplicaAssignment(replicas))
        leadership = LeaderAndIsr(leader=replicas[0], isr=replicas, leader_epoch=4)
        filled.put_leadership(partition, LeaderIsrAndControllerEpoch(leadership, 1))
    return filled


def test_live_and_shutting_down_brokers(context: ControllerContext) -> None:
    assert context.live_broker_ids == {1}
    assert context.live_or_shutting_down_broker_ids == {1, 2}
    assert context.is_live_broker(1)
    assert not context.is_live_broker(2)
    assert (context.broker_epoch(2), context.broker_epoch(3)) == (12, None)
    context.remove_live_brokers([1, 9])
    assert context.live_broker_ids == set()
    context.add_live_brokers({broker(3): 13})
    assert [b.id for b in context.live_or_shutting_down_brokers] == [2, 3]


def test_online_replicas(context: ControllerContext) -> None:
    assert context.online_replicas(T0) == (1,)
    assert context.online_replicas(T0, include_shutting_down=True) == (1, 2)
    context.replicas_on_offline_dirs[1] = frozenset({T0})
    assert context.online_replicas(T0) == ()
    assert context.online_replicas(U0) == (1,)


def test_partitions_of_brokers(context: ControllerContext) -> None:
    assert context.partitions_on_broker(2) == [T0, T1]
    assert context.replicas_on_brokers({1, 3}) == [
        PartitionAndReplica(T0, 1),
        PartitionAndReplica(U0, 3),
        PartitionAndReplica(U0, 1),
    ]
    assert context.partition_leaders_on_broker(1) == [T0]
    # With one replica there is nobody to lead instead.
    assert context.partition_leaders_on_broker(2) == []


def test_offline_leaders(context: ControllerContext) -> None:
    assert context.partitions_with_offline_leader == [T1, U0]
    context.topics_to_be_deleted.add("u")
    assert context.partitions_with_offline_leader == [T1]
    assert context.partitions_with_leaders == [T0, T1]


def test_leader_epochs(context: ControllerContext) -> None:
    assert context.leader_epoch(T0) == 4
    assert context.leader_epoch(TopicPartition("t", 9)) == NO_EPOCH
    context.topics_to_be_deleted.add("t")
    assert context.leader_epoch(T0) == EPOCH_DURING_DELETE


def test_a_topic_leaves_without_a_trace(context: ControllerContext) -> None:
    context.add_topic_id("t", b"t" * 16)
    context.topics_to_be_deleted.add("t")
    context.topics_with_deletion_started.add("t")
    context.partitions_being_reassigned.add(T0)
    context.topics_ineligible_for_deletion.add("t")
    context.remove_topic("t")
    assert context.all_partitions == [U0]
    assert context.leadership(T0) is None
    assert context.full_assignment(T0) == NO_REPLICAS
    assert (context.topic_ids, context.topic_names) == ({}, {})
    assert not context.topics_to_be_deleted
    assert not context.topics_with_deletion_started
    assert not context.partitions_being_reassigned
    assert not context.topics_ineligible_for_deletion
    context.remove_topic("t")


def test_topic_ids_are_unique(context: ControllerContext) -> None:
    context.add_topic_id("t", b"1" * 16)
    context.add_topic_id("t", b"1" * 16)
    with pytest.raises(ValueError, match="two ids"):
        context.add_topic_id("t", b"2" * 16)
    with pytest.raises(ValueError, match="belongs to"):
        context.add_topic_id("u", b"1" * 16)


def test_partitions_may_come_and_go_while_they_are_gone_through(context: ControllerContext) -> None:
    assert list(context.each_partition()) == context.all_partitions == [T0, T1, U0]
    assert (context.partition_count_of("t"), context.partition_count_of("x")) == (2, 0)
    going = context.each_partition()
    assert next(going) == T0
    context.update_assignment(TopicPartition("new", 0), ReplicaAssignment((1,)))
    context.remove_topic("u")
    assert list(going) == [T1]
