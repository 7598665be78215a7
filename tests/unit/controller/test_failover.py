from __future__ import annotations

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import create_base_nodes
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import shown


async def before_start(cluster: ControllerCluster) -> MetadataClient:
    client = MetadataClient(await cluster.database.connect())
    await create_base_nodes(client)
    return client


async def add_topic(client: MetadataClient, topic: str, topic_id: bytes | None, *replicas: int) -> None:
    data = topic_nodes.encode_topic(topic_id, {0: ReplicaAssignment(replicas)})
    await client.create_recursive(znodes.topic_path(topic), data)


@async_test
async def test_what_waits_in_the_tree_is_done() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        await add_topic(client, "new", b"n" * 16, 0)
        await add_topic(client, "going", b"g" * 16, 0)
        await client.create_recursive(znodes.delete_topic_path("going"))
        await client.create_recursive(znodes.delete_topic_path("never existed"))
        await cluster.start(0)
        assert await client.topics() == {"new"}
        assert await cluster.state("new") == (0, (0,), 0, 0)
        assert await client.topic_deletions() == set()


@async_test
async def test_a_topic_of_before_topic_ids_gets_one() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        await add_topic(client, "old", None, 0)
        await cluster.start(0)
        (topic,) = await client.topic_assignments(["old"])
        assert topic.topic_id == cluster.controller.controllership.context.topic_ids["old"]


@async_test
async def test_notifications_that_wait_are_deleted_unread() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        await client.propagate_log_dir_event(7)
        await client.create_recursive(f"{znodes.ISR_CHANGE_NOTIFICATION}/isr_change_0000000000", b"junk")
        await cluster.start(0)
        assert await client.children(znodes.LOG_DIR_EVENT_NOTIFICATION) == ()
        assert await client.children(znodes.ISR_CHANGE_NOTIFICATION) == ()


@async_test
async def test_a_partition_whose_leader_died_meanwhile_gets_another() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        await add_topic(client, "t", b"t" * 16, 5, 0)
        state = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=5, isr=(5, 0), leader_epoch=3), 1)
        path = znodes.partition_state_path(TopicPartition("t", 0))
        await client.create_recursive(path, topic_nodes.encode_partition_state(state))
        await cluster.start(0)
        leader, isr, _, _ = await cluster.state("t")
        assert (leader, isr) == (0, (0,))
        first, *others = (shown(request) for request in cluster.take_requests()[0])
        assert first == "brokers only"
        assert others[-1].startswith("t-0 leader 0")


@async_test
async def test_a_partition_nobody_can_lead_stays_offline() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        await add_topic(client, "t", b"t" * 16, 5)
        state = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=5, isr=(5,)), 1)
        path = znodes.partition_state_path(TopicPartition("t", 0))
        await client.create_recursive(path, topic_nodes.encode_partition_state(state))
        await cluster.start(0)
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.partition_states.state(TopicPartition("t", 0)) is PartitionState.OFFLINE
        assert (await cluster.state("t"))[:2] == (-1, (5,))


@async_test
async def test_features_are_enabled_and_kept() -> None:
    async with controller_cluster() as cluster:
        client = await before_start(cluster)
        disabled = b'{"version":2,"status":0,"features":{}}'
        await client.create_recursive(znodes.FEATURE, disabled)
        await cluster.start(0)
        node = await client.get(znodes.FEATURE)
        assert node is not None
        assert node.data == znodes.encode_feature()
        finalised = b'{"version":2,"status":1,"features":{"f":{"max_version_level":1}}}'
        await client.tree.run(SetData(znodes.FEATURE, finalised))
        await cluster.start(1)
        await cluster.kill(0)
        node = await client.get(znodes.FEATURE)
        assert node is not None
        assert node.data == finalised
