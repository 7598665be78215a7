from __future__ import annotations

import pytest

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.partition_state_nodes import PartitionStateNodes
from odradek.controller.states.context import ControllerContext
from odradek.controller.states.partition_states import StateChangeFailed
from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
STATE = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=1, isr=(1,)), 4)


async def opened() -> tuple[TreeDatabase, MetadataClient, PartitionStateNodes, ControllerContext]:
    database = await TreeDatabase.open(":memory:", ManualClock())
    client = MetadataClient(await database.connect())
    await client.create_all([znodes.topic_path("t"), "/config/topics"])
    await client.create_recursive(znodes.CONTROLLER_EPOCH, b"4")
    context = ControllerContext()
    context.epoch = 4
    settings = {"unclean.leader.election.enable": "true"}
    return database, client, PartitionStateNodes(client, context, lambda: settings), context


@async_test
async def test_states_are_created_with_their_parents_once() -> None:
    database, client, nodes, _ = await opened()
    assert await nodes.create_partition_states({T0: STATE}) == {}
    other = LeaderIsrAndControllerEpoch(STATE.leader_and_isr, 3)
    failed = await nodes.create_partition_states({T0: other, T1: STATE, U0: STATE})
    assert set(failed) == {T0, U0}
    assert await nodes.read_partition_states([T0, T1, U0]) == {T0: STATE, T1: STATE, U0: None}
    assert await client.children("/brokers/topics/t/partitions") == ("0", "1")
    assert await nodes.create_partition_states({}) == {}
    await database.close()


@async_test
async def test_updates_are_conditional() -> None:
    database, _, nodes, _ = await opened()
    await nodes.create_partition_states({T0: STATE, T1: STATE})
    newer = STATE.leader_and_isr.with_new_leader(2)
    updates = await nodes.update_partition_states({T0: newer, T1: newer.with_partition_epoch(5), U0: newer})
    assert updates.finished[T0] == newer.with_partition_epoch(1)
    assert isinstance(updates.finished[U0], StateChangeFailed)
    assert updates.to_retry == [T1]
    assert (await nodes.update_partition_states({})).finished == {}
    await database.close()


@async_test
async def test_of_unchanged_states_only_the_version_is_checked() -> None:
    database, _, nodes, _ = await opened()
    await nodes.create_partition_states({T0: STATE, T1: STATE})
    known = STATE.leader_and_isr
    updates = await nodes.update_partition_states({}, {T0: known, T1: known.with_partition_epoch(5), U0: known})
    assert updates.finished[T0] == known
    assert isinstance(updates.finished[U0], StateChangeFailed)
    assert updates.to_retry == [T1]
    assert await nodes.read_partition_states([T0, T1]) == {T0: STATE, T1: STATE}
    await database.close()


@async_test
async def test_a_write_that_is_sent_again_because_its_answer_was_lost_has_succeeded() -> None:
    database, _, nodes, context = await opened()
    await nodes.create_partition_states({T0: STATE})
    assert await nodes.create_partition_states({T0: STATE}) == {}
    newer = STATE.leader_and_isr.with_new_leader(2)
    first = await nodes.update_partition_states({T0: newer})
    assert await nodes.update_partition_states({T0: newer}) == first
    # Not what another controller wrote, nor what was written over since.
    context.epoch = 5
    assert (await nodes.update_partition_states({T0: newer})).to_retry == [T0]
    context.epoch = 4
    await nodes.update_partition_states({T0: newer.with_partition_epoch(1)})
    assert (await nodes.update_partition_states({T0: newer})).to_retry == [T0]
    await database.close()


@async_test
async def test_a_stale_controller_writes_nothing() -> None:
    database, client, nodes, context = await opened()
    await nodes.create_partition_states({T0: STATE})
    await client.tree.run(SetData(znodes.CONTROLLER_EPOCH, b"5"))
    with pytest.raises(ControllerMoved):
        await nodes.update_partition_states({T0: STATE.leader_and_isr.with_new_leader(2)})
    with pytest.raises(ControllerMoved):
        await nodes.create_partition_states({T1: STATE})
    context.epoch_zk_version = 1
    assert await nodes.create_partition_states({T1: STATE}) == {}
    await database.close()


@async_test
async def test_unclean_election_comes_from_the_topic_or_from_the_broker() -> None:
    database, client, nodes, _ = await opened()
    for topic, config in (
        ("on", {"unclean.leader.election.enable": "true"}),
        ("off", {"unclean.leader.election.enable": "false"}),
        ("broken", {"retention.ms": "x"}),
    ):
        await client.create_recursive(f"/config/topics/{topic}", znodes.encode_entity_config(config))
    await client.create_recursive("/config/topics/junk", b'{"config":{"min.insync.replicas":2}}')
    assert await nodes.unclean_leader_election_topics(["on", "off", "broken", "junk", "unset"]) == {"on", "unset"}
    await database.close()
