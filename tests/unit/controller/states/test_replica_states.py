from __future__ import annotations

import asyncio
import itertools
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.leader_and_isr import NO_LEADER, LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.replica import PartitionAndReplica
from odradek.controller.states.replica_states import VALID_PREVIOUS_REPLICA_STATES, ReplicaState, without_replica
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_states import CONTROLLER_EPOCH, StateMachines
from tests.support.in_process.loop_turns import most_in_a_turn

T0 = TopicPartition("t", 0)
NEW, ONLINE, OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE, GONE = ReplicaState
# Written out once more, on purpose, as Kafka's ReplicaStateMachine documents it.
LEGAL = {
    (GONE, NEW),
    *itertools.product((NEW, ONLINE, OFFLINE, INELIGIBLE), (ONLINE, OFFLINE)),
    (OFFLINE, STARTED),
    (STARTED, SUCCESSFUL),
    (STARTED, INELIGIBLE),
    (OFFLINE, INELIGIBLE),
    (SUCCESSFUL, GONE),
}


def test_the_table() -> None:
    assert {(before, after) for after, all_ in VALID_PREVIOUS_REPLICA_STATES.items() for before in all_} == LEGAL


@pytest.mark.parametrize(("before", "after"), list(itertools.product(ReplicaState, ReplicaState)))
@async_test
async def test_every_transition(before: ReplicaState, after: ReplicaState) -> None:
    machines = StateMachines(live={0, 1})
    machines.assign(T0, 0, 1)
    machines.lead(T0, 0, (0, 1))
    replica = PartitionAndReplica(T0, 1)
    machines.replicas.states[replica] = before
    await machines.replicas.handle_state_changes([replica], after)
    is_legal = (before, after) in LEGAL
    assert machines.replicas.state(replica) is (after if is_legal else before)
    sends = {NEW, OFFLINE, STARTED} | (set() if before is NEW else {ONLINE})
    assert bool(machines.take_sent()) is (is_legal and after in sends)


def prepared(state: ReplicaState) -> tuple[StateMachines, PartitionAndReplica]:
    """Partition t-0 on 0, 1, 2, all in sync, led by 0; the replica on 1 is in the state."""
    machines = StateMachines(live={0, 1, 2})
    machines.assign(T0, 0, 1, 2)
    machines.lead(T0, 0, (0, 1, 2), 5)
    replica = PartitionAndReplica(T0, 1)
    machines.replicas.states[replica] = state
    return machines, replica


@async_test
async def test_a_new_replica_of_a_led_partition_is_told_so() -> None:
    machines, replica = prepared(GONE)
    await machines.replicas.handle_state_changes([replica], NEW)
    assert machines.take_sent()[0] == "LeaderAndIsr -> 1: t-0 leader 0 epoch 5 isr 0,1,2 new"


@async_test
async def test_the_leader_cannot_be_new() -> None:
    machines, _ = prepared(GONE)
    leader = PartitionAndReplica(T0, 0)
    await machines.replicas.handle_state_changes([leader], NEW)
    assert machines.replicas.state(leader) is GONE
    assert machines.take_sent() == []


@async_test
async def test_an_online_replica_is_told_the_current_leadership() -> None:
    machines, replica = prepared(OFFLINE)
    await machines.replicas.handle_state_changes([replica], ONLINE)
    assert machines.take_sent() == [
        "LeaderAndIsr -> 1: t-0 leader 0 epoch 5 isr 0,1,2",
        *(f"UpdateMetadata -> {b}: t-0 leader 0 epoch 5 isr 0,1,2" for b in range(3)),
    ]


@async_test
async def test_a_new_replica_outside_the_assignment_joins_it() -> None:
    machines, _ = prepared(NEW)
    stranger = PartitionAndReplica(T0, 7)
    machines.replicas.states[stranger] = NEW
    await machines.replicas.handle_state_changes([stranger], ONLINE)
    assert machines.context.replicas(T0) == (0, 1, 2, 7)


@async_test
async def test_an_offline_follower_leaves_the_isr() -> None:
    machines, replica = prepared(ONLINE)
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.leadership(T0) == (0, (0, 2), 6)
    assert machines.take_sent() == [
        "LeaderAndIsr -> 0: t-0 leader 0 epoch 6 isr 0,2",
        "LeaderAndIsr -> 2: t-0 leader 0 epoch 6 isr 0,2",
        *(f"UpdateMetadata -> {b}: t-0 leader 0 epoch 6 isr 0,2" for b in range(3)),
        "StopReplica -> 1: t-0 epoch 5",
    ]


@async_test
async def test_requests_go_to_live_brokers_only() -> None:
    machines, replica = prepared(ONLINE)
    machines.kill(1)
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.take_sent() == [
        "LeaderAndIsr -> 0: t-0 leader 0 epoch 6 isr 0,2",
        "LeaderAndIsr -> 2: t-0 leader 0 epoch 6 isr 0,2",
        "UpdateMetadata -> 0: t-0 leader 0 epoch 6 isr 0,2 offline 1",
        "UpdateMetadata -> 2: t-0 leader 0 epoch 6 isr 0,2 offline 1",
    ]


@async_test
async def test_the_last_member_of_an_isr_stays() -> None:
    machines, _ = prepared(ONLINE)
    machines.lead(T0, 0, (0,), 5)
    leader = PartitionAndReplica(T0, 0)
    machines.replicas.states[leader] = ONLINE
    await machines.replicas.handle_state_changes([leader], OFFLINE)
    assert machines.leadership(T0) == (NO_LEADER, (0,), 6)


@async_test
async def test_a_replica_out_of_sync_leaves_without_a_new_epoch() -> None:
    machines, replica = prepared(ONLINE)
    machines.lead(T0, 0, (0, 2), 5)
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.leadership(T0) == (0, (0, 2), 5)
    assert machines.replicas.state(replica) is OFFLINE
    assert machines.take_sent()[0] == "LeaderAndIsr -> 0: t-0 leader 0 epoch 5 isr 0,2"


@async_test
async def test_removal_from_the_isr_is_retried_when_the_leader_wrote_meanwhile() -> None:
    machines, replica = prepared(ONLINE)
    machines.store.races = 2
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.leadership(T0) == (0, (0, 2), 6)


@async_test
async def test_only_nodes_that_have_changed_are_read(caplog: pytest.LogCaptureFixture) -> None:
    """As a broker before Kafka 2.7 changes them: without the controller."""
    machines = StateMachines(live={0, 1, 2})
    partitions = [TopicPartition("t", index) for index in range(5)]
    replicas = [PartitionAndReplica(partition, 1) for partition in partitions]
    for partition, replica in zip(partitions, replicas, strict=True):
        machines.assign(partition, 0, 1, 2)
        machines.lead(partition, 0, (0, 1, 2), 5)
        machines.replicas.states[replica] = ONLINE
    in_sync, out_of_sync, joined, left, missing = partitions
    machines.lead(out_of_sync, 0, (0, 2), 5)
    machines.lead(joined, 0, (0, 2), 5)
    for partition, isr in ((joined, (0, 1, 2)), (left, (0, 2))):
        changed = LeaderAndIsr(leader=0, isr=isr, leader_epoch=5, partition_epoch=1)
        machines.store.states[partition] = LeaderIsrAndControllerEpoch(changed, CONTROLLER_EPOCH)
    del machines.store.states[missing]
    await machines.replicas.handle_state_changes(replicas, OFFLINE)
    assert machines.store.reads == 3
    assert machines.leadership(in_sync) == machines.leadership(joined) == (0, (0, 2), 6)
    assert machines.leadership(out_of_sync) == machines.leadership(left) == (0, (0, 2), 5)
    assert [machines.replicas.state(replica) for replica in replicas] == [OFFLINE] * 4 + [ONLINE]
    assert caplog.text.count("no state node") == 1


@async_test
async def test_a_replica_stays_when_a_later_controller_wrote_the_state() -> None:
    machines, replica = prepared(ONLINE)
    written = LeaderAndIsr(leader=0, isr=(0, 1, 2), partition_epoch=1)
    machines.store.states[T0] = LeaderIsrAndControllerEpoch(written, CONTROLLER_EPOCH + 1)
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.replicas.state(replica) is ONLINE


@async_test
async def test_replicas_of_a_topic_being_deleted_are_stopped_without_telling_the_others() -> None:
    machines, replica = prepared(ONLINE)
    machines.context.topics_to_be_deleted.add("t")
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.take_sent() == ["StopReplica -> 1: t-0 epoch -2"]
    await machines.replicas.handle_state_changes([replica], STARTED)
    assert machines.take_sent() == ["StopReplica -> 1: t-0 epoch -2 delete"]


@async_test
async def test_an_offline_replica_without_leadership_is_only_published() -> None:
    machines = StateMachines(live={0, 1})
    machines.assign(T0, 0, 1)
    replica = PartitionAndReplica(T0, 1)
    machines.replicas.states[replica] = NEW
    await machines.replicas.handle_state_changes([replica], OFFLINE)
    assert machines.take_sent() == [
        "UpdateMetadata -> 0: brokers only",
        "UpdateMetadata -> 1: brokers only",
        "StopReplica -> 1: t-0 epoch -1",
    ]


@async_test
async def test_a_replica_that_is_gone_leaves_the_assignment() -> None:
    machines, replica = prepared(SUCCESSFUL)
    await machines.replicas.handle_state_changes([replica], GONE)
    assert machines.context.replicas(T0) == (0, 2)
    assert replica not in machines.replicas.states


@async_test
async def test_startup_starts_the_live_and_stops_the_dead() -> None:
    machines, _ = prepared(GONE)
    machines.replicas.states.clear()
    machines.kill(2)
    await machines.replicas.startup()
    states = {replica.replica: state for replica, state in machines.replicas.states.items()}
    assert states == {0: ONLINE, 1: ONLINE, 2: OFFLINE}
    assert machines.leadership(T0) == (0, (0, 1), 6)


@given(
    isr=st.lists(st.integers(0, 4), min_size=1, unique=True).map(tuple), leads=st.booleans(), replica=st.integers(0, 4)
)
def test_an_isr_never_becomes_empty(isr: tuple[int, ...], leads: bool, replica: int) -> None:
    before = LeaderAndIsr(leader=isr[0] if leads else NO_LEADER, isr=isr, leader_epoch=3)
    after = without_replica(before, replica)
    if replica not in isr:
        assert after is None
    else:
        assert after is not None
        assert after.leader_epoch == 4
        assert after.leader == (NO_LEADER if replica == before.leader else before.leader)
        assert after.isr == (isr if len(isr) == 1 else tuple(r for r in isr if r != replica))


@async_test
async def test_startup_gives_the_loop_its_turns() -> None:
    machines = StateMachines(live={0})
    count = 3 * ITEMS_A_TURN
    for index in range(count):
        machines.assign(TopicPartition("t", index), 0)
        machines.lead(TopicPartition("t", index), 0, (0,))
    turns = []
    for machine in (machines.replicas, machines.partitions):
        work = asyncio.ensure_future(machine.startup())
        turns.append(0)
        while not work.done():
            turns[-1] += 1
            await asyncio.sleep(0)
        await work
    # What each replica is; whether it may become that; what its broker is told. What each partition is.
    assert turns[0] >= 3 * count // ITEMS_A_TURN
    assert turns[1] >= count // ITEMS_A_TURN


@pytest.mark.parametrize(
    "way", [(NEW, ONLINE), (ONLINE, OFFLINE), (OFFLINE, STARTED, SUCCESSFUL, GONE), (INELIGIBLE, OFFLINE)]
)
@async_test
async def test_many_replicas_change_their_state_with_turns_for_others(way: tuple[ReplicaState, ...]) -> None:
    machines = StateMachines(live={0, 1})
    count = 4 * ITEMS_A_TURN
    replicas = []
    for index in range(count):
        partition = TopicPartition("t", index)
        machines.assign(partition, 0, 1)
        machines.lead(partition, 0, (0, 1))
        replicas.append(PartitionAndReplica(partition, 1))
        machines.replicas.states[replicas[-1]] = way[0]
    for target in way[1:]:
        changed = partial(sum_of_state, machines, replicas, target)
        assert await most_in_a_turn(machines.replicas.handle_state_changes(replicas, target), changed) <= ITEMS_A_TURN
        assert changed() == count


@async_test
async def test_many_replicas_become_new_with_turns_for_others() -> None:
    machines = StateMachines(live={0, 1})
    replicas = []
    for index in range(4 * ITEMS_A_TURN):
        machines.assign(TopicPartition("t", index), 0, 1)
        replicas.append(PartitionAndReplica(TopicPartition("t", index), 1))
    changed = partial(sum_of_state, machines, replicas, NEW)
    assert await most_in_a_turn(machines.replicas.handle_state_changes(replicas, NEW), changed) <= ITEMS_A_TURN


def sum_of_state(machines: StateMachines, replicas: list[PartitionAndReplica], state: ReplicaState) -> int:
    return sum(machines.replicas.state(replica) is state for replica in replicas)
