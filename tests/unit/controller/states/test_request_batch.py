from __future__ import annotations

import asyncio

import pytest

from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.request_batch import ControlRequest, RequestBatch
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.metadata_version import LATEST_PRODUCTION, OLDEST_BETWEEN_BROKERS, MetadataVersion
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_states import CONTROLLER_EPOCH, StateMachines, broker, shown
from tests.support.in_process.loop_turns import most_in_a_turn

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LEADERSHIP = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=3, partition_epoch=8), 5)
ASSIGNMENT = ReplicaAssignment((1, 2, 3), (3,), (2,))


def machines() -> StateMachines:
    prepared = StateMachines(live={1, 2})
    prepared.assign(T0, 1, 2)
    prepared.assign(T1, 1, 2)
    prepared.context.put_leadership(T0, LEADERSHIP)
    return prepared


def taken(batch: RequestBatch) -> list[tuple[int, ControlRequest]]:
    return asyncio.run(batch.take_requests())


def test_an_empty_batch_sends_nothing() -> None:
    batch = machines().batch
    assert batch.is_empty
    assert taken(batch) == []


def test_the_order_is_leader_and_isr_then_metadata_then_stop_replica() -> None:
    batch = machines().batch
    batch.add_stop_replica((1,), T1, delete=False)
    batch.add_leader_and_isr((2, 1), T0, LEADERSHIP, ASSIGNMENT, is_new=False)
    assert not batch.is_empty
    sent = taken(batch)
    assert [(to, type(request)) for to, request in sent] == [
        (2, LeaderAndIsrRequest),
        (1, LeaderAndIsrRequest),
        (1, UpdateMetadataRequest),
        (2, UpdateMetadataRequest),
        (1, StopReplicaRequest),
    ]
    assert batch.is_empty


def test_every_field_of_leader_and_isr() -> None:
    prepared = machines()
    prepared.batch.add_leader_and_isr((2,), T0, LEADERSHIP, ASSIGNMENT, is_new=True)
    request = taken(prepared.batch)[0][1]
    assert isinstance(request, LeaderAndIsrRequest)
    assert (request.controller_id, request.controller_epoch, request.broker_epoch) == (0, CONTROLLER_EPOCH, 102)
    assert (request.type, request.is_kraft_controller) == (0, False)
    (topic,) = request.topic_states
    assert (topic.topic_name, topic.topic_id) == ("t", prepared.context.topic_ids["t"])
    (state,) = topic.partition_states
    assert (state.partition_index, state.controller_epoch, state.leader, state.leader_epoch) == (0, 5, 1, 3)
    assert (state.isr, state.partition_epoch, state.is_new, state.leader_recovery_state) == ([1, 2], 8, True, 0)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ([1, 2, 3], [3], [2])
    (leader,) = request.live_leaders
    assert (leader.broker_id, leader.host_name, leader.port) == (1, "host1", 9092)


def test_new_stays_new_and_the_latest_state_wins() -> None:
    prepared = machines()
    prepared.batch.add_leader_and_isr((1,), T0, LEADERSHIP, ASSIGNMENT, is_new=True)
    later = LeaderIsrAndControllerEpoch(LEADERSHIP.leader_and_isr.with_new_leader(2), 7)
    prepared.batch.add_leader_and_isr((1,), T0, later, ASSIGNMENT, is_new=False)
    (_, request), *_ = taken(prepared.batch)
    assert shown(request) == "t-0 leader 2 epoch 4 isr 1,2 new replicas 1,2,3 adding [3] removing [2]"


def test_deletion_stays_deletion() -> None:
    prepared = machines()
    prepared.batch.add_stop_replica((1,), T0, delete=True)
    prepared.batch.add_stop_replica((1,), T0, delete=False)
    ((_, request),) = taken(prepared.batch)
    assert shown(request) == "t-0 epoch 3 delete"


def test_stop_replica_epochs() -> None:
    prepared = machines()
    prepared.assign(TopicPartition("gone", 0), 1)
    prepared.context.topics_to_be_deleted.add("gone")
    for partition in (T0, T1, TopicPartition("gone", 0)):
        prepared.batch.add_stop_replica((1,), partition, delete=False)
    ((_, request),) = taken(prepared.batch)
    assert shown(request) == "t-0 epoch 3; t-1 epoch -1; gone-0 epoch -2"


def test_metadata_of_a_topic_being_deleted() -> None:
    prepared = machines()
    prepared.context.topics_to_be_deleted.add("t")
    prepared.batch.add_update_metadata((1,), (T0, T1))
    ((_, request),) = taken(prepared.batch)
    assert isinstance(request, UpdateMetadataRequest)
    (state,) = request.topic_states[0].partition_states
    assert (state.leader, state.leader_epoch, state.zk_version, state.isr) == (-2, 0, 0, [1, 2])


def test_metadata_always_lists_all_live_brokers() -> None:
    prepared = machines()
    prepared.context.shutting_down_broker_ids.add(2)
    prepared.batch.add_update_metadata((1, 9))
    ((to, request),) = taken(prepared.batch)
    assert isinstance(request, UpdateMetadataRequest)
    assert to == 1
    assert request.topic_states == []
    assert [broker.id for broker in request.live_brokers] == [1, 2]
    (end_point,) = request.live_brokers[0].endpoints
    assert (end_point.host, end_point.port, end_point.listener, end_point.security_protocol) == (
        "host1",
        9092,
        "PLAINTEXT",
        0,
    )


def test_a_topic_without_an_id() -> None:
    prepared = machines()
    prepared.context.topic_ids.clear()
    prepared.batch.add_leader_and_isr((1,), T0, LEADERSHIP, ASSIGNMENT, is_new=False)
    for _, request in taken(prepared.batch):
        assert not isinstance(request, StopReplicaRequest)
        assert request.topic_states[0].topic_id == ZERO_UUID


@pytest.mark.parametrize(
    "metadata_version", [version for version in MetadataVersion if version >= OLDEST_BETWEEN_BROKERS]
)
def test_every_request_survives_the_wire_at_its_version(metadata_version: MetadataVersion) -> None:
    """Also when all that newer versions added is set; a request that cannot be encoded would be lost."""
    prepared = machines()
    prepared.context.update_broker(broker(2)._replace(rack="r"))
    prepared.context.replicas_on_offline_dirs[2] = frozenset({T0})
    batch = RequestBatch(prepared.context, 0, "PLAINTEXT", metadata_version)
    recovering = LEADERSHIP.leader_and_isr._replace(leader_recovery_state=LeaderRecoveryState.RECOVERING)
    leadership = LEADERSHIP._replace(leader_and_isr=recovering)
    prepared.context.put_leadership(T0, leadership)
    batch.add_leader_and_isr((1,), T0, leadership, ASSIGNMENT, is_new=True)
    batch.add_stop_replica((1,), T1, delete=True)
    versions = {
        LeaderAndIsrRequest: metadata_version.leader_and_isr_request_version,
        UpdateMetadataRequest: metadata_version.update_metadata_request_version,
        StopReplicaRequest: metadata_version.stop_replica_request_version,
    }
    for _, request in taken(batch):
        version = versions[type(request)]
        assert decode(type(request), memoryview(encode(request, version)), version) == request
        if isinstance(request, LeaderAndIsrRequest):
            (state,) = request.topic_states[0].partition_states
            assert state.leader_recovery_state == metadata_version.has_leader_recovery


@pytest.mark.parametrize(
    ("metadata_version", "has_ids"),
    [(MetadataVersion.IBP_2_8_IV0, False), (MetadataVersion.IBP_2_8_IV1, True), (LATEST_PRODUCTION, True)],
)
def test_topic_ids_are_sent_since_the_version_that_has_a_place_for_them(
    metadata_version: MetadataVersion, has_ids: bool
) -> None:
    prepared = machines()
    batch = RequestBatch(prepared.context, 0, "PLAINTEXT", metadata_version)
    batch.add_leader_and_isr((1,), T0, LEADERSHIP, ASSIGNMENT, is_new=True)
    topic_id = prepared.context.topic_ids["t"]
    for _, request in taken(batch):
        assert not isinstance(request, StopReplicaRequest)
        assert request.topic_states[0].topic_id == (topic_id if has_ids else ZERO_UUID)


@async_test
async def test_requests_about_many_topics_are_made_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    topic_id = RequestBatch._topic_id

    def counted(batch: RequestBatch, topic: str) -> bytes:
        nonlocal made
        made += 1
        return topic_id(batch, topic)

    monkeypatch.setattr(RequestBatch, "_topic_id", counted)
    prepared = machines()
    partitions = [TopicPartition(f"t{number}", 0) for number in range(1000)]
    for partition in partitions:
        prepared.assign(partition, 1, 2)
        prepared.context.put_leadership(partition, LEADERSHIP)
        prepared.batch.add_leader_and_isr((1, 2), partition, LEADERSHIP, ASSIGNMENT, is_new=True)
    assert await most_in_a_turn(prepared.batch.take_requests(), lambda: made) <= 2 * ITEMS_A_TURN
    assert made == 3 * len(partitions)
