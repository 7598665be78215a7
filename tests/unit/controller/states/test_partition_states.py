from __future__ import annotations

import itertools
import logging
from functools import partial

import pytest

from odradek.controller.loop_turns import ITEMS_A_TURN
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.states.leader_election import ElectionStrategy
from odradek.controller.states.partition_states import (
    VALID_PREVIOUS_PARTITION_STATES,
    PartitionState,
    StateChangeFailed,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_states import CONTROLLER_EPOCH, StateMachines
from tests.support.in_process.loop_turns import most_in_a_turn

T0 = TopicPartition("t", 0)
NEW, ONLINE, OFFLINE, GONE = PartitionState
# Written out once more, on purpose, as Kafka's PartitionStateMachine documents it.
LEGAL = {
    (GONE, NEW),
    (NEW, ONLINE),
    (ONLINE, ONLINE),
    (OFFLINE, ONLINE),
    (NEW, OFFLINE),
    (ONLINE, OFFLINE),
    (OFFLINE, OFFLINE),
    (OFFLINE, GONE),
}


def test_the_table() -> None:
    assert {(before, after) for after, all_ in VALID_PREVIOUS_PARTITION_STATES.items() for before in all_} == LEGAL


@pytest.mark.parametrize(("before", "after"), list(itertools.product(PartitionState, PartitionState)))
@async_test
async def test_every_transition(before: PartitionState, after: PartitionState) -> None:
    machines = StateMachines(live={0, 1})
    machines.assign(T0, 0, 1)
    if before in (ONLINE, OFFLINE):
        machines.lead(T0, 0, (0, 1))
    machines.partitions.states[T0] = before
    await machines.partitions.handle_state_changes([T0], after, ElectionStrategy.OFFLINE)
    assert machines.partitions.state(T0) is (after if (before, after) in LEGAL else before)
    assert bool(machines.take_sent()) is ((before, after) in LEGAL and after is ONLINE)


@async_test
async def test_an_illegal_transition_is_logged_and_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machines = StateMachines(live={0})
    partitions = [TopicPartition("t", i) for i in range(2)]
    for partition in partitions:
        machines.assign(partition, 0)
    machines.partitions.states[partitions[0]] = ONLINE
    with caplog.at_level(logging.ERROR):
        await machines.partitions.handle_state_changes(partitions, NEW)
    assert [machines.partitions.state(partition) for partition in partitions] == [ONLINE, NEW]
    assert "t-0 from ONLINE to NEW" in caplog.text


@async_test
async def test_a_new_partition_starts_with_its_live_replicas() -> None:
    machines = StateMachines(live={0, 2})
    machines.assign(T0, 1, 2, 0)
    await machines.partitions.handle_state_changes([T0], NEW)
    await machines.partitions.handle_state_changes([T0], ONLINE, ElectionStrategy.OFFLINE)
    assert machines.leadership(T0) == (2, (2, 0), 0)
    assert machines.take_sent() == [
        "LeaderAndIsr -> 2: t-0 leader 2 epoch 0 isr 2,0 new",
        "LeaderAndIsr -> 0: t-0 leader 2 epoch 0 isr 2,0 new",
        "UpdateMetadata -> 0: t-0 leader 2 epoch 0 isr 2,0 offline 1",
        "UpdateMetadata -> 2: t-0 leader 2 epoch 0 isr 2,0 offline 1",
    ]


@async_test
async def test_a_new_partition_without_live_replicas_waits_for_one() -> None:
    machines = StateMachines(live={5})
    machines.assign(T0, 0)
    await machines.partitions.handle_state_changes([T0], NEW)
    await machines.partitions.trigger_online_state_change()
    assert machines.partitions.state(T0) is NEW
    assert machines.take_sent() == []


@async_test
async def test_three_partitions_and_a_death() -> None:
    """Partitions on 1,2,0 / 2,0,1 / 0,1,2; broker 0 dies, and only what it led moves."""
    machines = StateMachines(live={0, 1, 2})
    partitions = [TopicPartition("t", i) for i in range(3)]
    for partition, replicas in zip(partitions, ((1, 2, 0), (2, 0, 1), (0, 1, 2)), strict=True):
        machines.assign(partition, *replicas)
    await machines.partitions.handle_state_changes(partitions, NEW)
    await machines.partitions.handle_state_changes(partitions, ONLINE, ElectionStrategy.OFFLINE)
    machines.take_sent()
    machines.kill(0)
    await machines.partitions.handle_state_changes(machines.context.partitions_with_offline_leader, OFFLINE)
    await machines.partitions.trigger_online_state_change()
    assert [machines.leadership(partition)[0] for partition in partitions] == [1, 2, 1]
    assert machines.leadership(partitions[2]) == (1, (1, 2), 1)
    assert machines.take_sent() == [
        "LeaderAndIsr -> 1: t-2 leader 1 epoch 1 isr 1,2",
        "LeaderAndIsr -> 2: t-2 leader 1 epoch 1 isr 1,2",
        "UpdateMetadata -> 1: t-2 leader 1 epoch 1 isr 1,2 offline 0",
        "UpdateMetadata -> 2: t-2 leader 1 epoch 1 isr 1,2 offline 0",
    ]


@async_test
async def test_an_election_is_held_again_when_the_leader_changed_the_isr_meanwhile() -> None:
    machines = StateMachines(live={1})
    machines.assign(T0, 0, 1)
    machines.lead(T0, 0, (0, 1))
    machines.partitions.states[T0] = OFFLINE
    machines.store.races = 2
    await machines.partitions.trigger_online_state_change()
    assert machines.leadership(T0) == (1, (1,), 1)
    assert machines.store.states[T0].leader_and_isr.partition_epoch == 3


@async_test
async def test_only_nodes_that_have_changed_are_read() -> None:
    """As a broker before Kafka 2.7 changes them: without the controller."""
    machines = StateMachines(live={1, 2})
    partitions = [TopicPartition("t", index) for index in range(4)]
    for partition in partitions:
        machines.assign(partition, 0, 1, 2)
        machines.lead(partition, 0, (0, 1))
        machines.partitions.states[partition] = OFFLINE
    same, other_isr, none_in_sync, missing = partitions
    changed = LeaderAndIsr(leader=0, isr=(0, 2), partition_epoch=1)
    machines.store.states[other_isr] = LeaderIsrAndControllerEpoch(changed, CONTROLLER_EPOCH)
    machines.lead(none_in_sync, 0, (0,))
    machines.store.states[none_in_sync] = LeaderIsrAndControllerEpoch(changed, CONTROLLER_EPOCH)
    del machines.store.states[missing]
    results = await machines.partitions.trigger_online_state_change()
    assert machines.store.reads == 3
    assert machines.leadership(same) == (1, (1,), 1)
    assert machines.leadership(other_isr) == machines.leadership(none_in_sync) == (2, (2,), 1)
    assert "doesn't exist" in str(results[missing])


@async_test
async def test_the_state_of_a_later_controller_is_left_alone() -> None:
    machines = StateMachines(live={1})
    machines.assign(T0, 0, 1)
    machines.lead(T0, 0, (0, 1))
    written = LeaderAndIsr(leader=0, isr=(0, 1), partition_epoch=1)
    machines.store.states[T0] = LeaderIsrAndControllerEpoch(written, CONTROLLER_EPOCH + 1)
    machines.partitions.states[T0] = OFFLINE
    results = await machines.partitions.trigger_online_state_change()
    assert isinstance(results[T0], StateChangeFailed)
    assert "later controller" in str(results[T0])
    assert machines.partitions.state(T0) is OFFLINE
    assert machines.take_sent() == []


@async_test
async def test_unclean_election_is_for_topics_that_allow_it() -> None:
    machines = StateMachines(live={1})
    unclean, clean = TopicPartition("unclean", 0), TopicPartition("clean", 0)
    for partition in (unclean, clean):
        machines.assign(partition, 0, 1)
        machines.lead(partition, 0, (0,))
        machines.partitions.states[partition] = OFFLINE
    machines.store.unclean_topics = {"unclean"}
    await machines.partitions.trigger_online_state_change()
    assert machines.partitions.state(unclean) is ONLINE
    assert machines.partitions.state(clean) is OFFLINE
    assert machines.take_sent() == [
        "LeaderAndIsr -> 1: unclean-0 leader 1 epoch 1 isr 1 recovering",
        "UpdateMetadata -> 1: unclean-0 leader 1 epoch 1 isr 1 offline 0",
    ]


@async_test
async def test_topics_being_deleted_are_not_brought_online() -> None:
    machines = StateMachines(live={0})
    machines.assign(T0, 0)
    machines.partitions.states[T0] = NEW
    machines.context.topics_to_be_deleted.add("t")
    assert await machines.partitions.trigger_online_state_change() == {}
    assert machines.partitions.state(T0) is NEW


@async_test
async def test_only_partitions_of_one_topic_are_triggered() -> None:
    machines = StateMachines(live={0})
    for topic in ("a", "b"):
        machines.assign(TopicPartition(topic, 0), 0)
        machines.partitions.states[TopicPartition(topic, 0)] = NEW
    await machines.partitions.trigger_online_state_change("a")
    assert machines.partitions.state(TopicPartition("a", 0)) is ONLINE
    assert machines.partitions.state(TopicPartition("b", 0)) is NEW


@async_test
async def test_startup_takes_the_states_from_the_context() -> None:
    machines = StateMachines(live={0, 1})
    led, dead, never = (TopicPartition(topic, 0) for topic in ("led", "dead", "never"))
    machines.assign(led, 0)
    machines.lead(led, 0, (0,), 4)
    machines.assign(dead, 9)
    machines.lead(dead, 9, (9,), 4)
    machines.assign(never, 1)
    await machines.partitions.startup()
    assert machines.partitions.states == {led: ONLINE, dead: OFFLINE, never: ONLINE}
    assert machines.leadership(led) == (0, (0,), 4)


@async_test
async def test_an_election_needs_a_strategy() -> None:
    machines = StateMachines(live={0})
    machines.assign(T0, 0)
    machines.partitions.states[T0] = OFFLINE
    with pytest.raises(ValueError, match="strategy"):
        await machines.partitions.handle_state_changes([T0], ONLINE)


@async_test
async def test_many_partitions_change_their_state_with_turns_for_others() -> None:
    machines = StateMachines(live={0})
    partitions = [TopicPartition("t", index) for index in range(4 * ITEMS_A_TURN)]
    for partition in partitions:
        machines.assign(partition, 0)

    def in_state(state: PartitionState) -> int:
        return sum(machines.partitions.state(partition) is state for partition in partitions)

    for target in (NEW, ONLINE, OFFLINE, ONLINE, OFFLINE, GONE):
        work = machines.partitions.handle_state_changes(partitions, target, ElectionStrategy.OFFLINE)
        assert await most_in_a_turn(work, partial(in_state, target)) <= ITEMS_A_TURN
        if target is not GONE:
            assert in_state(target) == len(partitions)
