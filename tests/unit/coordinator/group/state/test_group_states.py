from __future__ import annotations

import pytest

from odradek.coordinator.group.state.group_states import (
    ANSWERS,
    TRANSITIONS,
    GroupEvent,
    GroupLifecycle,
    GroupRequest,
    GroupState,
    IllegalTransitionError,
)
from odradek.protocol.errors import ErrorCode
from odradek.timer.clock import ManualClock

KAFKAS_PREVIOUS_STATES = {
    GroupState.PREPARING_REBALANCE: {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY},
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.DEAD: set(GroupState),
}


def test_transitions_are_kafkas() -> None:
    previous: dict[GroupState, set[GroupState]] = {state: set() for state in GroupState}
    for state, row in TRANSITIONS.items():
        for target in row.values():
            previous[target].add(state)
    assert previous == KAFKAS_PREVIOUS_STATES


def test_nothing_leaves_dead() -> None:
    assert set(TRANSITIONS[GroupState.DEAD].values()) == {GroupState.DEAD}


def test_every_state_is_reached_from_empty() -> None:
    reached = {GroupState.EMPTY}
    while (more := {target for state in reached for target in TRANSITIONS[state].values()}) - reached:
        reached |= more
    assert reached == set(GroupState)


@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("event", GroupEvent)
def test_an_event_without_a_row_is_a_bug(state: GroupState, event: GroupEvent) -> None:
    lifecycle = GroupLifecycle(ManualClock(), state)
    if event in TRANSITIONS[state]:
        assert lifecycle.fire(event) is lifecycle.state is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalTransitionError, match=state.value):
            lifecycle.fire(event)
        assert lifecycle.state is state


@pytest.mark.parametrize("state", GroupState)
def test_a_rebalance_is_possible_where_the_table_says_so(state: GroupState) -> None:
    can = state in (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    assert GroupLifecycle(ManualClock(), state).can_rebalance is can


def test_the_time_of_a_transition_is_kept_in_wall_clock_time() -> None:
    clock = ManualClock(1_000, monotonic_ms=0)
    lifecycle = GroupLifecycle(clock)
    assert lifecycle.since_ms == 1_000
    clock.advance(5)
    lifecycle.fire(GroupEvent.REBALANCE)
    assert lifecycle.since_ms == 1_005


@pytest.mark.parametrize("request_kind", GroupRequest)
def test_every_request_has_an_answer_in_every_state(request_kind: GroupRequest) -> None:
    assert set(ANSWERS[request_kind]) == set(GroupState)


def test_a_dead_group_serves_nothing() -> None:
    assert all(answers[GroupState.DEAD] != ErrorCode.NONE for answers in ANSWERS.values())
