from __future__ import annotations

from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster
from tests.support.clusters.controller_states import shown

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@async_test
async def test_a_topic_written_by_a_tool_is_led() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        data = b'{"version":1,"partitions":{"0":[0],"1":[0]}}'
        await cluster.client.create_recursive(znodes.topic_path("t"), data)
        await cluster.settle()
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.partition_states.states == {T0: PartitionState.ONLINE, T1: PartitionState.ONLINE}
        assert controllership.replica_states.state(PartitionAndReplica(T1, 0)) is ReplicaState.ONLINE
        (topic,) = await cluster.client.topic_assignments(["t"])
        assert topic.topic_id == controllership.context.topic_ids["t"]


@async_test
async def test_partitions_written_by_a_tool_are_led_and_nothing_else_changes() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        topic_id = (await cluster.create("t", {0: [0]})).topic_id
        cluster.take_requests()
        data = topic_nodes.encode_topic(topic_id, {0: ReplicaAssignment((9,)), 1: ReplicaAssignment((0,))})
        await cluster.client.tree.run(SetData(znodes.topic_path("t"), data))
        await cluster.settle()
        assert [shown(request) for request in cluster.take_requests()[0]] == [
            "t-1 leader 0 epoch 0 isr 0 new",
            "t-1 leader 0 epoch 0 isr 0",
        ]
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.context.replicas(T0) == (0,)


@async_test
async def test_a_topic_that_vanishes_is_forgotten_and_may_return() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]})
        await cluster.client.delete_recursive(znodes.topic_path("t"), 1)
        await cluster.settle()
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.context.all_topics == set()
        assert not controllership.partition_states.states
        assert not controllership.replica_states.states
        await cluster.client.create_recursive(znodes.topic_path("t"), b'{"version":1,"partitions":{"0":[0]}}')
        await cluster.settle()
        assert await cluster.state("t") == (0, (0,), 0, 0)


@async_test
async def test_many_topics_at_once() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        names = [f"topic-{i}" for i in range(50)]
        for name in names:
            await cluster.client.create_recursive(znodes.topic_path(name), b'{"version":1,"partitions":{"0":[0]}}')
        await cluster.settle()
        assert cluster.brokers[0].leaders == {TopicPartition(name, 0): 0 for name in names}
