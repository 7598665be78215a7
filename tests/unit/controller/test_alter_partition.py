from __future__ import annotations

import pytest

from odradek.controller.alter_partition import validate_proposal
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.states.context import ControllerContext
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.controller_states import broker, shown

T0 = TopicPartition("t", 0)
CURRENT = LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=5, partition_epoch=9)
RECOVERING = LeaderRecoveryState.RECOVERING


@pytest.mark.parametrize(
    ("proposed", "verdict"),
    [
        (CURRENT._replace(isr=(1, 2, 3)), None),
        (CURRENT._replace(isr=(1,)), None),
        (CURRENT._replace(isr=(1,), partition_epoch=10), ErrorCode.NOT_CONTROLLER),
        (CURRENT._replace(isr=(1,), leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (CURRENT._replace(isr=(1,), leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (CURRENT._replace(leader_epoch=4, partition_epoch=10), ErrorCode.NOT_CONTROLLER),
        (CURRENT, CURRENT),
        (CURRENT._replace(partition_epoch=7), CURRENT),
        (CURRENT._replace(isr=(2, 1), partition_epoch=8), ErrorCode.INVALID_UPDATE_VERSION),
        (CURRENT._replace(isr=(1, 3), leader_recovery_state=RECOVERING), ErrorCode.INVALID_REQUEST),
        (CURRENT._replace(isr=(1,), leader_recovery_state=RECOVERING), ErrorCode.INVALID_REQUEST),
        (CURRENT._replace(isr=(1, 9)), ErrorCode.INELIGIBLE_REPLICA),
        (CURRENT._replace(isr=(1, 4)), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_every_check(proposed: LeaderAndIsr, verdict: LeaderAndIsr | ErrorCode | None) -> None:
    context = context_with(CURRENT)
    assert validate_proposal(context, T0, proposed, 3) == verdict


def context_with(current: LeaderAndIsr) -> ControllerContext:
    """Brokers 1, 2 and 3 live, 4 shutting down."""
    context = ControllerContext()
    context.set_live_brokers({broker(broker_id): 1 for broker_id in (1, 2, 3, 4)})
    context.shutting_down_broker_ids.add(4)
    context.put_leadership(T0, LeaderIsrAndControllerEpoch(current, 1))
    return context


def test_old_versions_have_no_code_for_ineligible_replicas() -> None:
    proposed = CURRENT._replace(isr=(1, 9))
    assert validate_proposal(context_with(CURRENT), T0, proposed, 1) is ErrorCode.OPERATION_NOT_ATTEMPTED


def test_unknown_partitions() -> None:
    assert validate_proposal(ControllerContext(), T0, CURRENT, 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_recovering_leader_may_recover() -> None:
    recovering = CURRENT._replace(isr=(1,), leader_recovery_state=RECOVERING)
    assert (
        validate_proposal(
            context_with(recovering), T0, recovering._replace(leader_recovery_state=LeaderRecoveryState(0)), 3
        )
        is None
    )


async def propose(
    cluster: ControllerCluster, topic_id: bytes, isr: list[int], *, epoch: int = 0, version: int = 3, broker_id: int = 1
) -> tuple[int, list[tuple[int, int, list[int], int]]]:
    """Send an AlterPartition of t-0; the top-level error, and error, leader, ISR and partition epoch per partition."""
    partition = RequestPartitionData(partition_index=0, leader_epoch=0, partition_epoch=epoch)
    if version >= 3:
        partition.new_isr_with_epochs = [BrokerState(broker_id=replica) for replica in isr]
    else:
        partition.new_isr = isr
    request = AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=cluster.brokers[1].controller.broker_epoch,
        topics=[RequestTopicData(topic_id=topic_id, topic_name="t", partitions=[partition])],
    )
    response = await cluster.controller.alter_partition(request, version)
    return response.error_code, [
        (answer.error_code, answer.leader_id, answer.isr, answer.partition_epoch)
        for topic in response.topics
        for answer in topic.partitions
    ]


@async_test
async def test_an_isr_is_written_answered_and_published() -> None:
    async with controller_cluster() as cluster:
        for broker_id in (1, 2):
            await cluster.start(broker_id)
        topic_id = (await cluster.create("t", {0: [1, 2]})).topic_id
        cluster.take_requests()
        assert await propose(cluster, topic_id, [1]) == (0, [(0, 1, [1], 1)])
        await cluster.settle()
        assert await cluster.state("t") == (1, (1,), 0, 1)
        for requests in cluster.take_requests().values():
            (request,) = requests
            assert isinstance(request, UpdateMetadataRequest)
            assert shown(request) == "t-0 leader 1 epoch 0 isr 1"
        # The same again, as after a lost answer, and then something else at the old epoch.
        assert await propose(cluster, topic_id, [1]) == (0, [(0, 1, [1], 1)])
        assert await propose(cluster, topic_id, [1, 2]) == (0, [(ErrorCode.INVALID_UPDATE_VERSION, 0, [], 0)])
        assert await propose(cluster, topic_id, [1, 2], epoch=1, version=2) == (0, [(0, 1, [1, 2], 2)])
        assert await propose(cluster, topic_id, [2], epoch=2, version=1) == (0, [(0, 1, [2], 3)])


@async_test
async def test_unknown_ids_stale_brokers_and_an_idle_controller_are_refused() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(1)
        await cluster.create("t", {0: [1]})
        assert await propose(cluster, bytes(15) + b"\x63", [1]) == (0, [(ErrorCode.UNKNOWN_TOPIC_ID, 0, [], 0)])
        assert await propose(cluster, bytes(16), [1], broker_id=9) == (ErrorCode.STALE_BROKER_EPOCH, [])
        idle = await cluster.start(2)
        answer = await idle.alter_partition(AlterPartitionRequest(), 3)
        assert answer.error_code == ErrorCode.NOT_CONTROLLER
