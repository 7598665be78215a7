from __future__ import annotations

from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.states.replica_states import ReplicaState
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import shown


async def mark(cluster: ControllerCluster, topic: str) -> None:
    await cluster.client.create_recursive(znodes.delete_topic_path(topic))
    await cluster.settle()


@async_test
async def test_what_the_brokers_are_told() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0, 1]})
        cluster.take_requests()
        await mark(cluster, "t")
        requests = cluster.take_requests()
        assert [type(request) for request in requests[1]] == [
            UpdateMetadataRequest,
            StopReplicaRequest,
            StopReplicaRequest,
        ]
        assert [shown(request) for request in requests[1]] == [
            "t-0 leader -2 epoch 0 isr 0,1",
            "t-0 epoch -2",
            "t-0 epoch -2 delete",
        ]
        assert not any(isinstance(request, LeaderAndIsrRequest) for request in requests[0])
        assert await cluster.client.topics() == set()
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.context.all_partitions == []
        assert not controllership.partition_states.states
        assert not controllership.replica_states.states


@async_test
async def test_a_dead_replica_holds_up_the_deletion_until_it_returns() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0, 1]})
        await cluster.kill(1)
        await mark(cluster, "t")
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.context.topics_ineligible_for_deletion == {"t"}
        states = {replica.replica: state for replica, state in controllership.replica_states.states.items()}
        # The dead one was ineligible and is OFFLINE again, ready for another attempt.
        assert states == {0: ReplicaState.DELETION_SUCCESSFUL, 1: ReplicaState.OFFLINE}
        assert controllership.partition_states.state(TopicPartition("t", 0)) is PartitionState.NON_EXISTENT
        assert await cluster.client.topics() == {"t"}
        await cluster.start(1)
        assert await cluster.client.topics() == set()
        assert await cluster.client.topic_deletions() == set()


@async_test
async def test_a_broker_that_dies_while_deleting_holds_it_up() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0, 1]})
        cluster.brokers[1].answers = False
        await mark(cluster, "t")
        assert await cluster.client.topics() == {"t"}
        await cluster.kill(1)
        cluster.brokers[1].answers = True
        await cluster.start(1)
        assert await cluster.client.topics() == set()


@async_test
async def test_the_next_controller_finishes_a_deletion() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1]})
        cluster.brokers[1].answers = False
        await mark(cluster, "t")
        cluster.brokers[1].answers = True
        await cluster.kill(0)
        assert cluster.controller.config.broker_id == 1
        assert await cluster.client.topics() == set()


@async_test
async def test_unknown_topics_are_taken_off_the_list() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await mark(cluster, "none")
        assert await cluster.client.topic_deletions() == set()


@async_test
async def test_deletion_can_be_disabled() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0, delete_topic_enable=False)
        await cluster.create("t", {0: [0]})
        await mark(cluster, "t")
        assert await cluster.client.topic_deletions() == set()
        assert await cluster.client.topics() == {"t"}


@async_test
async def test_deletion_ends_a_reassignment() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [0]})
        partition = TopicPartition("t", 0)
        await cluster.reassign({partition: (1,)})
        cluster.brokers[1].answers = False
        cluster.take_requests()
        await mark(cluster, "t")
        # The replica that is being added is deleted, too.
        assert shown(cluster.take_requests()[1][-1]) == "t-0 epoch -2 delete"
        # Once deletion is queued a reassignment is refused, even one that cancels.
        results = await cluster.reassign({partition: None})
        assert results[partition] is not None
        # And nothing resumes the old one, neither a broker that returns nor the next controller.
        await cluster.kill(1)
        cluster.brokers[1].answers = True
        await cluster.start(1)
        assert await cluster.client.topics() == set()


@async_test
async def test_the_next_controller_deletes_a_topic_that_is_being_moved() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1]})
        await cluster.reassign({TopicPartition("t", 0): (0, 1)})
        cluster.brokers[1].answers = False
        await mark(cluster, "t")
        await cluster.kill(0)
        cluster.brokers[1].answers = True
        await cluster.start(0)
        await cluster.settle()
        assert await cluster.client.topics() == set()


@async_test
async def test_partitions_added_to_a_topic_being_deleted_are_taken_back() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        topic_id = (await cluster.create("t", {0: [0]})).topic_id
        cluster.brokers[0].answers = False
        await mark(cluster, "t")
        data = topic_nodes.encode_topic(topic_id, {0: ReplicaAssignment((0,)), 1: ReplicaAssignment((0,))})
        await cluster.client.tree.run(SetData(znodes.topic_path("t"), data))
        await cluster.settle()
        (topic,) = await cluster.client.topic_assignments(["t"])
        assert topic.assignment == {0: ReplicaAssignment((0,))}
