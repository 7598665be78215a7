from __future__ import annotations

import pytest

from odradek.controller.model.broker_info import Broker, EndPoint, SecurityProtocol
from odradek.controller.tree.metadata_tree import Create, CreateMode
from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.metadata_version import LATEST_PRODUCTION, OLDEST_BETWEEN_BROKERS, MetadataVersion
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import shown
from tests.support.clusters.forbidden_nodes import forbidden_nodes


async def three_brokers(cluster: ControllerCluster, metadata_version: MetadataVersion = LATEST_PRODUCTION) -> None:
    """Brokers 0 (the controller), 1 and 2; three partitions whose leaders are 1, 2 and 0."""
    for broker_id in range(3):
        await cluster.start(broker_id, metadata_version=metadata_version)
    await cluster.create("t", {0: [1, 2, 0], 1: [2, 0, 1], 2: [0, 1, 2]})
    cluster.take_requests()


@async_test
async def test_the_partitions_of_a_dead_broker_move_and_it_leaves_every_isr() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        await cluster.kill(2)
        assert await cluster.state("t", 0) == (1, (1, 0), 1, 1)
        assert await cluster.state("t", 1) == (0, (0, 1), 1, 1)
        assert await cluster.state("t", 2) == (0, (0, 1), 1, 1)
        assert cluster.brokers[1].leaders == {
            TopicPartition("t", 0): 1,
            TopicPartition("t", 1): 0,
            TopicPartition("t", 2): 0,
        }
        last = [request for request in cluster.take_requests()[1] if isinstance(request, UpdateMetadataRequest)][-1]
        assert [broker.id for broker in last.live_brokers] == [0, 1]


@async_test
async def test_a_broker_that_returns_follows_and_leads_nothing() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        await cluster.kill(2)
        cluster.take_requests()
        await cluster.start(2)
        metadata, become, *_ = cluster.take_requests()[2]
        assert isinstance(metadata, UpdateMetadataRequest)
        assert len(metadata.topic_states[0].partition_states) == 3
        assert isinstance(become, LeaderAndIsrRequest)
        states = become.topic_states[0].partition_states
        assert all(state.leader != 2 and 2 not in state.isr and not state.is_new for state in states)


@async_test
async def test_the_only_replica_keeps_its_isr_while_its_broker_is_down() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1]})
        await cluster.kill(1)
        assert await cluster.state("t") == (-1, (1,), 1, 1)
        assert cluster.brokers[0].leaders[TopicPartition("t", 0)] == -1
        await cluster.start(1)
        assert await cluster.state("t") == (1, (1,), 2, 2)


@async_test
async def test_a_bounced_broker_is_failed_and_started() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        epoch = cluster.brokers[2].controller.broker_epoch
        await cluster.expire(2)
        assert cluster.brokers[2].controller.broker_epoch > epoch
        controllership = cluster.controller.controllership
        assert controllership is not None
        assert controllership.context.broker_epoch(2) == cluster.brokers[2].controller.broker_epoch
        assert (await cluster.state("t", 1))[0] == 0
        assert 2 in cluster.controller._channel.connected


@async_test
async def test_new_endpoints_of_a_broker_reach_everybody() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        info = cluster.brokers[2].info
        moved = Broker(2, (EndPoint("elsewhere", 9, "PLAINTEXT", SecurityProtocol.PLAINTEXT),))
        await cluster.brokers[2].controller.update_broker_info(info._replace(broker=moved))
        await cluster.settle()
        for requests in cluster.take_requests().values():
            (request,) = requests
            assert isinstance(request, UpdateMetadataRequest)
            assert request.live_brokers[2].endpoints[0].host == "elsewhere"


@async_test
async def test_controlled_shutdown_moves_leaders_and_then_followers() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        await cluster.create("single", {0: [2]})
        cluster.take_requests()
        controller = cluster.controller
        epoch = cluster.brokers[2].controller.broker_epoch
        assert await controller.controlled_shutdown(2, epoch) == []
        await cluster.settle()
        assert await cluster.state("t", 1) == (0, (0, 1), 1, 1)
        assert await cluster.state("t", 0) == (1, (1, 0), 1, 1)
        assert await cluster.state("single") == (2, (2,), 0, 0)
        to_leaving = cluster.take_requests()[2]
        stops = [shown(request) for request in to_leaving if isinstance(request, StopReplicaRequest)]
        assert stops[0] == "t-0 epoch 0; t-2 epoch 0"
        metadata = [request for request in to_leaving if isinstance(request, UpdateMetadataRequest)]
        assert [broker.id for broker in metadata[-1].live_brokers] == [0, 1, 2]
        # The broker may ask again, and then goes.
        assert await controller.controlled_shutdown(2, -1) == []
        await cluster.kill(2)
        controllership = controller.controllership
        assert controllership is not None
        assert controllership.context.shutting_down_broker_ids == set()


@async_test
async def test_controlled_shutdown_names_what_cannot_be_moved() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1, 0]})
        await cluster.kill(0)
        controller = cluster.controller
        assert controller.config.broker_id == 1
        assert await controller.controlled_shutdown(1, controller.broker_epoch) == [TopicPartition("t", 0)]


@async_test
async def test_controlled_shutdown_of_an_unknown_or_earlier_broker_is_refused() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        for broker_id, epoch, code in (
            (9, -1, ErrorCode.BROKER_NOT_AVAILABLE),
            (9, 1, ErrorCode.UNKNOWN_SERVER_ERROR),
            (0, controller.broker_epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        ):
            with pytest.raises(KafkaError) as refusal:
                await controller.controlled_shutdown(broker_id, epoch)
            assert refusal.value.code is code


@pytest.mark.parametrize("metadata_version", [OLDEST_BETWEEN_BROKERS, MetadataVersion.IBP_2_8_IV1, LATEST_PRODUCTION])
@async_test
async def test_replicas_on_a_failed_log_directory_go_offline(metadata_version: MetadataVersion) -> None:
    """Also when the response names topics instead of topic ids, as it does before 2.8-IV1."""
    async with controller_cluster() as cluster:
        await three_brokers(cluster, metadata_version)
        failed = TopicPartition("t", 0)
        cluster.brokers[1].storage_errors.add(failed)
        await cluster.client.propagate_log_dir_event(1)
        await cluster.settle()
        assert await cluster.state("t", 0) == (2, (2, 0), 1, 1)
        assert (await cluster.state("t", 1))[1] == (2, 0, 1)
        assert await cluster.client.children(znodes.LOG_DIR_EVENT_NOTIFICATION) == ()
        metadata = [r for r in cluster.take_requests()[0] if isinstance(r, UpdateMetadataRequest) and r.topic_states]
        assert "offline 1" in shown(metadata[-1])


@async_test
async def test_a_log_dir_event_that_may_not_be_read_does_not_hide_others() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        failed = TopicPartition("t", 0)
        cluster.brokers[1].storage_errors.add(failed)
        controller = cluster.brokers[0].controller
        assert controller is not None
        forbidden_nodes(controller.client.tree).add(f"{znodes.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_0000000000")
        for broker_id in (2, 1):
            await cluster.client.propagate_log_dir_event(broker_id)
        await cluster.settle()
        assert (await cluster.state("t", 0))[1] == (2, 0)
        assert await cluster.client.children(znodes.LOG_DIR_EVENT_NOTIFICATION) == ()


@async_test
async def test_an_isr_change_notification_is_read_and_removed() -> None:
    async with controller_cluster() as cluster:
        await three_brokers(cluster)
        controller = cluster.brokers[0].controller
        assert controller is not None
        path = f"{znodes.ISR_CHANGE_NOTIFICATION}/isr_change_"
        forbidden_nodes(controller.client.tree).add(f"{path}0000000000")
        data = znodes.encode_partitions([TopicPartition("t", 0), TopicPartition("none", 0)])
        creations = [Create(path, each, CreateMode.PERSISTENT_SEQUENTIAL) for each in (b"may not be read", data)]
        await cluster.client.tree.submit(creations)
        await cluster.settle()
        (request,) = cluster.take_requests()[2]
        assert shown(request) == "t-0 leader 1 epoch 0 isr 1,2,0"
        assert await cluster.client.children(znodes.ISR_CHANGE_NOTIFICATION) == ()
