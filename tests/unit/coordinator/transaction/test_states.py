"""The table of states: complete, and without a way that is not there."""

from __future__ import annotations

from odradek.coordinator.transaction.states import (
    END_ANSWERS,
    EXPIRABLE,
    PREPARED,
    STATES_BY_NAME,
    VALID_PREVIOUS,
    TransactionState,
)
from odradek.protocol.errors import ErrorCode

S = TransactionState


def test_names_and_numbers_are_kafkas() -> None:
    assert [(int(state), str(state)) for state in S] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]
    assert STATES_BY_NAME["PrepareEpochFence"] is S.PREPARE_EPOCH_FENCE


def test_every_state_says_what_it_follows_from() -> None:
    assert set(VALID_PREVIOUS) == set(S)


def test_nothing_follows_from_the_dead() -> None:
    assert all(S.DEAD not in previous for previous in VALID_PREVIOUS.values())


def test_a_decision_cannot_be_changed() -> None:
    following = {
        state: {later for later, previous in VALID_PREVIOUS.items() if state in previous} for state in PREPARED
    }
    assert following == {S.PREPARE_COMMIT: {S.COMPLETE_COMMIT}, S.PREPARE_ABORT: {S.COMPLETE_ABORT}}


def test_what_can_expire_can_die() -> None:
    assert VALID_PREVIOUS[S.DEAD] == EXPIRABLE


def test_the_end_is_answered_wherever_it_does_not_decide() -> None:
    assert set(END_ANSWERS) == set(S) - {S.ONGOING, S.DEAD, S.PREPARE_EPOCH_FENCE}
    served = {(state, committed) for state, by in END_ANSWERS.items() for committed in by if by[committed] == 0}
    assert served == {(S.COMPLETE_COMMIT, True), (S.COMPLETE_ABORT, False)}
    assert END_ANSWERS[S.PREPARE_COMMIT][True] == ErrorCode.CONCURRENT_TRANSACTIONS
