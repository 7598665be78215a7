from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from odradek.controller.controller import FAILOVER_RETRY_MS, Controller
from odradek.controller.events import ElectionType, TopicChange
from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.partition_states import PartitionState
from odradek.controller.tree.embedded_tree import EmbeddedTree
from odradek.controller.tree.metadata_tree import (
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    Multi,
    Operation,
    SetData,
    StorageFull,
)
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster

T0 = TopicPartition("t", 0)


@async_test
async def test_the_first_broker_becomes_the_controller_with_epoch_1() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        assert controller.is_active
        assert controller.active_controller_id == 1
        assert await controller.client.controller_epoch() == (1, 1)
        node = await controller.client.get(znodes.CONTROLLER)
        assert node is not None
        assert znodes.decode_controller(node.data) == (1, -1)
        registration = await controller.client.get(znodes.broker_id_path(1))
        assert registration is not None
        assert registration.stat.czxid == controller.broker_epoch
        assert (await controller.client.get(znodes.FEATURE)) is not None


@async_test
async def test_the_second_broker_waits_and_is_told_about_the_cluster() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(1)
        await cluster.create("t", {0: [1]})
        cluster.take_requests()
        second = await cluster.start(2)
        assert not second.is_active
        assert second.active_controller_id == 1
        requests = cluster.take_requests()
        (to_first,) = requests[1]
        assert isinstance(to_first, UpdateMetadataRequest)
        assert to_first.topic_states == []
        assert [broker.id for broker in to_first.live_brokers] == [1, 2]
        (to_second,) = requests[2]
        assert isinstance(to_second, UpdateMetadataRequest)
        assert [topic.topic_name for topic in to_second.topic_states] == ["t"]
        assert to_second.broker_epoch == second.broker_epoch


@async_test
async def test_when_the_controller_dies_another_takes_over_with_the_next_epoch() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(1)
        await cluster.start(2)
        await cluster.create("t", {0: [1, 2]})
        cluster.take_requests()
        await cluster.kill(1)
        assert cluster.controller.config.broker_id == 2
        assert await cluster.client.controller_epoch() == (2, 2)
        # The dead replica leaves the ISR, and with it the leader; then a leader is elected: two epochs, as with Kafka.
        assert await cluster.state("t") == (2, (2,), 2, 2)
        requests = cluster.take_requests()[2]
        assert {request.controller_epoch for request in requests} == {2}
        # Who is alive comes first, then what to lead, then what to tell clients.
        assert isinstance(requests[0], UpdateMetadataRequest)
        assert requests[0].topic_states == []
        assert isinstance(requests[1], LeaderAndIsrRequest)


@async_test
async def test_a_restart_from_the_same_database_raises_the_epochs_and_loads_the_state(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    async with controller_cluster(path) as cluster:
        first = await cluster.start(0)
        await cluster.create("t", {0: [0], 1: [0]}, {"retention.ms": "1000"})
        broker_epoch, topic_id = first.broker_epoch, (await cluster.create("u", {0: [0]})).topic_id
    async with controller_cluster(path) as cluster:
        second = await cluster.start(0)
        assert second.broker_epoch > broker_epoch
        assert await second.client.controller_epoch() == (2, 2)
        assert second.controllership is not None
        context = second.controllership.context
        assert context.all_topics == {"t", "u"}
        assert context.topic_ids["u"] == topic_id
        assert set(second.controllership.partition_states.states.values()) == {PartitionState.ONLINE}
        assert await cluster.client.entity_configs("topics", ["t", "u"]) == {"t": {"retention.ms": "1000"}, "u": {}}
        told = [request for request in cluster.take_requests()[0] if isinstance(request, LeaderAndIsrRequest)]
        states = [state for request in told for topic in request.topic_states for state in topic.partition_states]
        assert len(states) == 3
        assert all(state.leader == 0 and not state.is_new for state in states)


@async_test
async def test_a_restart_after_a_crash_elects_what_was_not_elected_yet(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    async with controller_cluster(path) as cluster:
        await cluster.start(0)
        # The topic node is written, and the process dies before the controller acts on it.
        data = topic_nodes.encode_topic(cluster.new_topic_id(), {0: ReplicaAssignment((0,))})
        await cluster.controller.shutdown()
        await cluster.brokers[0].tree.run(Create(znodes.topic_path("t"), data))
        cluster.brokers[0].controller = None
    async with controller_cluster(path) as cluster:
        await cluster.start(0)
        assert await cluster.state("t") == (0, (0,), 0, 0)


@pytest.mark.parametrize(
    ("step", "failure", "epoch"),
    [
        ("odradek.controller.failover.on_controller_failover", RuntimeError("a bug"), 2),
        ("odradek.controller.failover.on_controller_failover", ConnectionLoss(znodes.TOPICS), 2),
        ("odradek.controller.controller.register_controller", ControllerMoved("whoever won is gone again"), 1),
    ],
)
def test_an_election_without_a_controller_is_repeated(
    step: str, failure: Exception, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [failure]
    real = pkgutil.resolve_name(step)

    async def fail_once(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return await real(*arguments)

    @async_test
    async def check() -> None:
        async with controller_cluster() as cluster:
            controller = await cluster.start(1)
            if epoch > 1:
                assert not controller.is_active
                assert await controller.client.controller() is not None
                cluster.clock.advance(FAILOVER_RETRY_MS)
                cluster.timer.advance()
                await cluster.settle()
            assert controller.is_active
            assert await controller.client.controller_epoch() == (epoch, epoch)

    monkeypatch.setattr(step, fail_once)
    check()


def without_space(monkeypatch: pytest.MonkeyPatch, tree: EmbeddedTree, refused: Collection[int]) -> None:
    """The writes with these numbers find no space."""
    submit, count = tree.submit, 0

    async def submit_with_space(operations: Sequence[Operation[object]]) -> list[object]:
        nonlocal count
        if any(isinstance(operation, Create | SetData | Delete | Multi) for operation in operations):
            count += 1
            if count in refused:
                raise StorageFull("", "there is no space")
        return await submit(operations)

    monkeypatch.setattr(tree, "submit", submit_with_space)


async def wait_for_election(cluster: ControllerCluster, controller: Controller) -> int:
    """How many times the delay of an election has passed."""
    for number in range(5):
        if controller.is_active:
            return number
        cluster.clock.advance(FAILOVER_RETRY_MS)
        cluster.timer.advance()
        await cluster.settle()
    raise AssertionError("nobody is elected")


@pytest.mark.parametrize(
    ("refused", "delays"),
    [
        pytest.param({1}, 0, id="change of state"),
        pytest.param({1, 2, 3}, 2, id="deletion of /controller"),
        pytest.param({1, 3, 4}, 2, id="election"),
        pytest.param({1, 4}, 1, id="failover"),
        pytest.param({1, 4, 5}, 2, id="failover and deletion of /controller"),
    ],
)
def test_a_controller_whose_writes_find_no_space_is_elected_again(
    refused: Collection[int], delays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @async_test
    async def check() -> None:
        async with controller_cluster() as cluster:
            controller = await cluster.start(1)
            await cluster.start(2)
            await cluster.create("t", {0: [2, 1]})
            tree = cluster.brokers[1].tree
            assert tree is not None
            without_space(monkeypatch, tree, refused)
            await cluster.kill(2)
            assert await wait_for_election(cluster, controller) == delays
            leader, isr, _, _ = await cluster.state("t")
            assert (leader, isr) == (1, (1,))

    check()


@async_test
async def test_a_registration_that_finds_no_space_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        tree = cluster.brokers[1].tree
        assert tree is not None
        without_space(monkeypatch, tree, {1})
        await cluster.expire(1)
        assert await wait_for_election(cluster, controller) == 1
        assert await controller.client.exists(znodes.broker_id_path(1))


@async_test
async def test_losing_the_session_resigns_and_a_new_election_follows() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        await cluster.create("t", {0: [0]})
        epoch = controller.broker_epoch
        await cluster.expire(0)
        assert controller.is_active
        assert controller.broker_epoch > epoch
        assert await controller.client.controller_epoch() == (2, 2)
        assert (await cluster.state("t"))[0] == 0


@async_test
async def test_losing_the_session_makes_another_broker_the_controller() -> None:
    async with controller_cluster() as cluster:
        first = await cluster.start(1)
        await cluster.start(2)
        await cluster.create("t", {0: [1, 2]})
        await cluster.expire(1)
        assert cluster.controller.config.broker_id in (1, 2)
        assert not (first.is_active and cluster.controller is not first)
        leader, isr, _, _ = await cluster.state("t")
        assert leader in isr


@async_test
async def test_a_controller_that_was_replaced_without_noticing_resigns_at_its_next_write() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        await cluster.create("t", {0: [1]})
        intruder = await cluster.database.connect()
        # Another controller wrote the epoch; the fencing token of this one is stale now.
        await intruder.run(SetData(znodes.CONTROLLER_EPOCH, b"2"))
        await controller.client.create_recursive(znodes.delete_topic_path("t"))
        await cluster.settle()
        assert await controller.client.topics() == {"t"}
        assert not any(isinstance(request, StopReplicaRequest) for request in cluster.take_requests()[1])


@async_test
async def test_requests_to_an_idle_controller_are_refused() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(1)
        idle = await cluster.start(2)
        for request in (
            idle.controlled_shutdown(2, idle.broker_epoch),
            idle.elect_leaders(frozenset({T0}), ElectionType.PREFERRED),
            idle.allocate_producer_ids(2, idle.broker_epoch),
            idle.alter_partition_reassignments([]),
            idle.list_partition_reassignments(None),
            idle.update_features([]),
        ):
            with pytest.raises(KafkaError) as refusal:
                await request
            assert refusal.value.code is ErrorCode.NOT_CONTROLLER


@async_test
async def test_requests_after_shutdown_are_refused() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        waiting = asyncio.ensure_future(controller.allocate_producer_ids(1, controller.broker_epoch))
        await controller.shutdown()
        with pytest.raises(KafkaError):
            await waiting
        with pytest.raises(KafkaError):
            await controller.list_partition_reassignments(None)
        assert not controller.is_active


@async_test
async def test_producer_ids_come_in_blocks_of_a_thousand() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        first = await controller.allocate_producer_ids(1, controller.broker_epoch)
        second = await controller.allocate_producer_ids(1, controller.broker_epoch)
        assert (first.block_start, first.block_end, first.size) == (0, 999, 1000)
        assert second.block_start == 1000
        for broker_id, epoch, code in (
            (1, controller.broker_epoch + 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, 1, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            with pytest.raises(KafkaError) as refusal:
                await controller.allocate_producer_ids(broker_id, epoch)
            assert refusal.value.code is code


@async_test
async def test_a_failing_event_is_answered_and_the_next_one_is_handled(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        await controller.client.create_recursive(znodes.topic_path("bad"), b'{"partitions":{"x":[]}}')
        await cluster.settle()
        assert "Error processing event TopicChange()" in caplog.text
        controller.put(TopicChange())
        assert (await controller.allocate_producer_ids(1, controller.broker_epoch)).size == 1000


@async_test
async def test_a_broker_id_that_is_taken_is_refused() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(1)
        other = await cluster.database.connect()
        await other.run(Create(znodes.broker_id_path(2), b"", CreateMode.EPHEMERAL))
        with pytest.raises(Exception, match="already registered"):
            await cluster.start(2)
        cluster.brokers.pop(2)
