from __future__ import annotations

from typing import Any

import pytest

from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import Create, Delete, NoNode, SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import shown

T0 = TopicPartition("t", 0)


async def four_brokers(cluster: ControllerCluster) -> bytes:
    for broker_id in range(4):
        await cluster.start(broker_id)
    topic_id = (await cluster.create("t", {0: [0, 1]})).topic_id
    cluster.take_requests()
    return topic_id


async def assignment(cluster: ControllerCluster) -> ReplicaAssignment:
    (topic,) = await cluster.client.topic_assignments(["t"])
    return topic.assignment[0]


async def alter_isr(cluster: ControllerCluster, topic_id: bytes, isr: list[int]) -> None:
    leader, _, leader_epoch, partition_epoch = await cluster.state("t")
    partition = RequestPartitionData(
        partition_index=0,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
    )
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=cluster.brokers[leader].controller.broker_epoch,
        topics=[RequestTopicData(topic_id=topic_id, partitions=[partition])],
    )
    response = await cluster.controller.alter_partition(request, 3)
    assert response.topics[0].partitions[0].error_code == 0
    await cluster.settle()


@async_test
async def test_a_partition_moves_in_two_phases() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        controller = cluster.controller
        assert await cluster.reassign({T0: (2, 3)}) == {T0: None}
        await cluster.settle()
        moving = ReplicaAssignment((2, 3, 0, 1), (2, 3), (0, 1))
        assert await assignment(cluster) == moving
        assert await controller.list_partition_reassignments(None) == {T0: moving}
        assert await cluster.state("t") == (0, (0, 1), 1, 1)
        told = cluster.take_requests()
        adding = " replicas 2,3,0,1 adding [2, 3] removing [0, 1]"
        assert shown(told[0][0]) == f"t-0 leader 0 epoch 1 isr 0,1{adding}"
        assert shown(told[2][0]) == f"t-0 leader 0 epoch 1 isr 0,1 new{adding}"

        await alter_isr(cluster, topic_id, [0, 1, 2])
        assert await assignment(cluster) == moving
        cluster.take_requests()
        await alter_isr(cluster, topic_id, [0, 1, 2, 3])
        assert await assignment(cluster) == ReplicaAssignment((2, 3))
        assert await controller.list_partition_reassignments(None) == {}
        leader, isr, _, _ = await cluster.state("t")
        assert (leader, isr) == (2, (2, 3))
        told = cluster.take_requests()
        stops = [shown(request) for request in told[1] if type(request).__name__ == "StopReplicaRequest"]
        assert [stop.endswith("delete") for stop in stops] == [False, True]


@async_test
async def test_a_move_that_keeps_the_leader_keeps_it_leading() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        await cluster.reassign({T0: (0, 3)})
        await alter_isr(cluster, topic_id, [0, 1, 3])
        assert await assignment(cluster) == ReplicaAssignment((0, 3))
        leader, isr, _, _ = await cluster.state("t")
        assert (leader, isr) == (0, (0, 3))


@async_test
async def test_cancelling_restores_the_original_replicas_and_deletes_the_added_ones() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        await cluster.reassign({T0: (2, 3)})
        cluster.take_requests()
        assert await cluster.reassign({T0: None}) == {T0: None}
        await cluster.settle()
        assert await assignment(cluster) == ReplicaAssignment((0, 1))
        stops = [request for request in cluster.take_requests()[2] if type(request).__name__ == "StopReplicaRequest"]
        assert shown(stops[-1]).endswith("delete")


@async_test
async def test_a_move_goes_on_under_the_next_controller() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        await cluster.reassign({T0: (1, 3)})
        await cluster.kill(0)
        assert (await cluster.state("t"))[0] == 1
        await alter_isr(cluster, topic_id, [1, 3])
        assert await assignment(cluster) == ReplicaAssignment((1, 3))


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Empty replica list specified in partition reassignment."),
        (
            (1, 1),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)",
        ),
        ((-1,), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Invalid broker id in replica list: ArrayBuffer(-1)"),
        (
            (9,),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(9), "
            "live broker list: Set(0, 1, 2, 3)",
        ),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    ],
)
@async_test
async def test_refused_targets(target: tuple[int, ...] | None, code: ErrorCode, message: str | None) -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        error = (await cluster.reassign({T0: target}))[T0]
        assert isinstance(error, KafkaError)
        assert error.code is code
        if message is not None:
            assert error.message == message
        assert await assignment(cluster) == ReplicaAssignment((0, 1))


@async_test
async def test_unknown_partitions_are_not_moved() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        unknown = TopicPartition("none", 0)
        error = (await cluster.reassign({unknown: (1,)}))[unknown]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@async_test
async def test_a_partition_that_cannot_be_moved_does_not_keep_others_from_it() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        await cluster.create("broken", {0: [0]})
        change_topic_assignment = cluster.client.change_topic_assignment

        async def fail(topic: str, *arguments: Any) -> None:
            if topic == "broken":
                raise NoNode(znodes.topic_path(topic))
            await change_topic_assignment(topic, *arguments)

        cluster.client.change_topic_assignment = fail
        broken = TopicPartition("broken", 0)
        results = await cluster.reassign({broken: (1,), T0: (2, 3)})
        assert results[T0] is None
        assert results[broken].code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await assignment(cluster)).is_being_reassigned


@async_test
async def test_a_partition_that_never_had_a_leader_does_not_stop_the_failover() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        await cluster.create("dead", {0: [9]}, timeout_ms=0)
        dead = TopicPartition("dead", 0)
        results = await cluster.reassign({dead: (3,), T0: (1, 2)})
        assert results[dead].code is ErrorCode.UNKNOWN_SERVER_ERROR
        await cluster.kill(3)
        await cluster.kill(0)
        assert set(await cluster.controller.list_partition_reassignments(None)) == {dead, T0}
        await cluster.start(3)
        assert await cluster.controller.list_partition_reassignments(frozenset({dead})) == {}
        assert (await cluster.state("dead"))[:2] == (3, (3,))


@async_test
async def test_partitions_that_are_added_while_another_begins_to_move_are_not_lost() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        tree = cluster.client.tree
        watch_existence = cluster.client.watch_existence

        async def add_meanwhile(*arguments: Any) -> bool:
            """The controller is about to write the topic's node, and has not heard of what happens to it here."""
            data = topic_nodes.encode_topic(topic_id, {0: ReplicaAssignment((0, 1)), 1: ReplicaAssignment((2,))})
            await tree.run(SetData(znodes.topic_path("t"), data))
            return await watch_existence(*arguments)

        cluster.client.watch_existence = add_meanwhile
        await cluster.reassign({T0: (2, 3)})
        cluster.client.watch_existence = watch_existence
        await cluster.settle()
        (topic,) = await cluster.client.topic_assignments(["t"])
        assert topic.assignment == {0: ReplicaAssignment((2, 3, 0, 1), (2, 3), (0, 1)), 1: ReplicaAssignment((2,))}
        assert await cluster.state("t", 1) == (2, (2,), 0, 0)


@async_test
async def test_partitions_that_the_node_of_a_topic_has_lost_are_written_again() -> None:
    """Else the next controller would know the partition that moved, and no other."""
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        topic_id = (await cluster.create("u", {0: [0], 1: [1]})).topic_id
        await cluster.client.tree.run(SetData(znodes.topic_path("u"), b"{}"))
        await cluster.settle()
        await cluster.reassign({TopicPartition("u", 0): (2,)})
        (topic,) = await cluster.client.topic_assignments(["u"])
        moving = ReplicaAssignment((2, 0), (2,), (0,))
        assert (topic.topic_id, topic.assignment) == (topic_id, {0: moving, 1: ReplicaAssignment((1,))})


@async_test
async def test_a_legacy_reassignment_after_one_that_somebody_else_removed() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        tree = cluster.client.tree
        await tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (1, 2)})))
        await cluster.settle()
        await tree.run(Delete(znodes.REASSIGN_PARTITIONS))
        await cluster.reassign({T0: None})
        await tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (2,)})))
        await cluster.settle()
        assert (await assignment(cluster)).target_replicas == (2,)


@async_test
async def test_a_legacy_reassignment_in_the_tree() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        data = znodes.encode_reassignment({T0: (1, 2), TopicPartition("none", 0): (1,)})
        await cluster.client.create_recursive(znodes.ADMIN)
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, data))
        await cluster.settle()
        assert (await assignment(cluster)).is_being_reassigned
        assert await cluster.client.partition_reassignment() == {T0: (1, 2)}
        await alter_isr(cluster, topic_id, [0, 1, 2])
        assert await assignment(cluster) == ReplicaAssignment((1, 2))
        assert not await cluster.client.exists(znodes.REASSIGN_PARTITIONS)
        # The watch is set again.
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (1,)})))
        await cluster.settle()
        assert await assignment(cluster) == ReplicaAssignment((1,))


@pytest.mark.parametrize(
    "data",
    [
        b"junk",
        b"[]",
        b"{}",
        b'{"partitions":[7]}',
        b'{"version":1,"partitions":[]}',
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2147483648]}]}',
    ],
)
@async_test
async def test_a_legacy_reassignment_that_cannot_be_read_is_removed_and_the_next_one_is_noticed(data: bytes) -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, data))
        await cluster.settle()
        assert not await cluster.client.exists(znodes.REASSIGN_PARTITIONS)
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (1,)})))
        await cluster.settle()
        assert (await assignment(cluster)).target_replicas == (1,)


@async_test
async def test_a_legacy_reassignment_that_becomes_unreadable_stops_no_other() -> None:
    async with controller_cluster() as cluster:
        topic_id = await four_brokers(cluster)
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (1, 2)})))
        await cluster.settle()
        await cluster.client.tree.run(SetData(znodes.REASSIGN_PARTITIONS, b"junk"))
        await alter_isr(cluster, topic_id, [0, 1, 2])
        assert await assignment(cluster) == ReplicaAssignment((1, 2))
        assert not await cluster.client.exists(znodes.REASSIGN_PARTITIONS)
        await cluster.client.tree.run(Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({T0: (3,)})))
        await cluster.settle()
        await cluster.client.tree.run(SetData(znodes.REASSIGN_PARTITIONS, b"junk"))
        assert await cluster.reassign({T0: (1, 2)}) == {T0: None}


@async_test
async def test_a_partition_whose_state_cannot_be_read_is_not_moved_and_others_are() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        await cluster.create("u", {0: [0]})
        await cluster.client.tree.run(SetData(znodes.partition_state_path(T0), b'{"leader":"me"}'))
        results = await cluster.reassign({T0: (1, 2), TopicPartition("u", 0): (1,)})
        assert [None if error is None else error.code for error in results.values()] == [
            ErrorCode.UNKNOWN_SERVER_ERROR,
            None,
        ]


@async_test
async def test_the_message_about_a_very_long_target_fits_into_a_response() -> None:
    async with controller_cluster() as cluster:
        await four_brokers(cluster)
        results = await cluster.reassign({T0: (1,) * 100_000})
        error = results[T0]
        assert error is not None
        assert error.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert len(error.message) == MAX_STRING_BYTES
