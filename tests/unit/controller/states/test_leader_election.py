from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.context import ControllerContext
from odradek.controller.states.leader_election import (
    ElectionStrategy,
    controlled_shutdown_leader,
    elect,
    offline_leader,
    preferred_leader,
    reassigned_leader,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.controller_states import broker

T0 = TopicPartition("t", 0)
IDS = st.lists(st.integers(0, 5), max_size=5, unique=True)


def context_of(
    assignment: ReplicaAssignment | tuple[int, ...], live: set[int], shutting_down: frozenset[int] = frozenset()
) -> ControllerContext:
    context = ControllerContext()
    context.set_live_brokers({broker(broker_id): 1 for broker_id in live})
    context.shutting_down_broker_ids |= shutting_down
    full = assignment if isinstance(assignment, ReplicaAssignment) else ReplicaAssignment(assignment)
    context.update_assignment(T0, full)
    return context


def test_worked_example_leader_dies() -> None:
    """Assignment [1, 0, 2], ISR [2, 0], the leader 2 dies: 0 leads, for the assignment's order decides."""
    current = LeaderAndIsr(leader=2, isr=(2, 0), leader_epoch=3)
    result = elect(context_of((1, 0, 2), {0, 1}), T0, current, ElectionStrategy.OFFLINE)
    assert result.leader_and_isr == current._replace(leader=0, isr=(0,), leader_epoch=4)
    assert result.recipients == (1, 0)


def test_nobody_in_sync_is_alive() -> None:
    current = LeaderAndIsr(leader=2, isr=(2,))
    context = context_of((1, 0, 2), {0, 1})
    assert elect(context, T0, current, ElectionStrategy.OFFLINE).leader_and_isr is None
    for strategy, allowed in ((ElectionStrategy.OFFLINE, True), (ElectionStrategy.OFFLINE_UNCLEAN, False)):
        unclean = elect(context, T0, current, strategy, unclean_allowed=allowed).leader_and_isr
        assert unclean == LeaderAndIsr(
            leader=1, isr=(1,), leader_epoch=1, leader_recovery_state=LeaderRecoveryState.RECOVERING
        )


def test_a_live_replica_in_sync_forbids_an_unclean_leader_even_if_it_is_not_assigned() -> None:
    current = LeaderAndIsr(leader=-1, isr=(2,))
    for strategy in (ElectionStrategy.OFFLINE, ElectionStrategy.OFFLINE_UNCLEAN):
        result = elect(context_of((1,), {1, 2}), T0, current, strategy, unclean_allowed=True)
        assert result.leader_and_isr is None


def test_an_older_protocol_does_not_mark_an_unclean_election() -> None:
    unclean = elect(
        context_of((1, 0, 2), {0, 1}),
        T0,
        LeaderAndIsr(leader=2, isr=(2,)),
        ElectionStrategy.OFFLINE_UNCLEAN,
        has_leader_recovery=False,
    ).leader_and_isr
    assert unclean == LeaderAndIsr(leader=1, isr=(1,), leader_epoch=1)


def test_a_clean_election_keeps_the_recovery_state() -> None:
    current = LeaderAndIsr(leader=1, isr=(1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    elected = elect(context_of((1,), {1}), T0, current, ElectionStrategy.OFFLINE).leader_and_isr
    assert elected is not None
    assert elected.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_a_replica_on_a_failed_log_directory_is_not_live() -> None:
    context = context_of((0, 1), {0, 1})
    context.replicas_on_offline_dirs[0] = frozenset({T0})
    result = elect(context, T0, LeaderAndIsr(leader=0, isr=(0, 1)), ElectionStrategy.OFFLINE)
    assert result.leader_and_isr == LeaderAndIsr(leader=1, isr=(1,), leader_epoch=1)
    assert result.recipients == (1,)


def test_reassignment_elects_among_the_target_replicas() -> None:
    moving = ReplicaAssignment((1, 2)).reassign_to((4, 5))
    current = LeaderAndIsr(leader=1, isr=(1, 2, 5, 4))
    result = elect(context_of(moving, {1, 2, 5}), T0, current, ElectionStrategy.REASSIGN)
    assert result.leader_and_isr == current._replace(leader=5, leader_epoch=1)
    assert result.recipients == (4, 5)


@pytest.mark.parametrize(("live", "isr", "leader"), [({0, 1}, (1, 0), 0), ({1}, (1, 0), None), ({0, 1}, (1,), None)])
def test_preferred_election(live: set[int], isr: tuple[int, ...], leader: int | None) -> None:
    current = LeaderAndIsr(leader=1, isr=isr)
    result = elect(context_of((0, 1), live), T0, current, ElectionStrategy.PREFERRED)
    assert (result.leader_and_isr.leader if result.leader_and_isr else None) == leader
    assert result.recipients == (0, 1)
    if result.leader_and_isr is not None:
        assert result.leader_and_isr.isr == isr


def test_controlled_shutdown_moves_the_leader_and_shrinks_the_isr() -> None:
    current = LeaderAndIsr(leader=0, isr=(0, 1, 2))
    context = context_of((0, 1, 2), {0, 1, 2}, frozenset({0}))
    result = elect(context, T0, current, ElectionStrategy.CONTROLLED_SHUTDOWN)
    assert result.leader_and_isr == LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=1)
    assert result.recipients == (0, 1, 2)


def test_controlled_shutdown_of_everybody_in_sync_fails() -> None:
    context = context_of((0, 1), {0, 1}, frozenset({0}))
    result = elect(context, T0, LeaderAndIsr(leader=0, isr=(0,)), ElectionStrategy.CONTROLLED_SHUTDOWN)
    assert result.leader_and_isr is None


@given(assignment=IDS, isr=IDS, live=st.frozensets(st.integers(0, 5)), down=st.frozensets(st.integers(0, 5)))
def test_against_the_definitions(
    assignment: list[int], isr: list[int], live: frozenset[int], down: frozenset[int]
) -> None:
    clean = [replica for replica in assignment if replica in live and replica in isr]
    assert offline_leader(assignment, isr, live, unclean=False) == (clean[0] if clean else None)
    anybody = clean or [replica for replica in assignment if replica in live]
    assert offline_leader(assignment, isr, live, unclean=True) == (anybody[0] if anybody else None)
    assert reassigned_leader(assignment, isr, live) == (clean[0] if clean else None)
    preferred = assignment[0] if assignment[:1] == clean[:1] and clean else None
    assert preferred_leader(assignment, isr, live) == preferred
    staying = [replica for replica in clean if replica not in down]
    assert controlled_shutdown_leader(assignment, isr, live, down) == (staying[0] if staying else None)
