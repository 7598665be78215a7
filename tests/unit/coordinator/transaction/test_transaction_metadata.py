"""One transactional id: what may become of it, and what is a bug."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.coordinator.transaction.states import VALID_PREVIOUS, IllegalTransitionError, TransactionState
from odradek.coordinator.transaction.transaction_metadata import (
    LAST_EPOCH,
    TransactionMetadata,
    TransitMetadata,
    is_epoch_exhausted,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

S = TransactionState
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def metadata(state: TransactionState = S.EMPTY, **fields: Any) -> TransactionMetadata:
    values: dict[str, Any] = {
        "producer_id": 7,
        "producer_epoch": 2,
        "timeout_ms": 1000,
        "last_update_timestamp_ms": 10,
        **fields,
    }
    return TransactionMetadata("id", state=state, **values)


def ongoing(**fields: Any) -> TransactionMetadata:
    return metadata(S.ONGOING, topic_partitions=[P0], start_timestamp_ms=5, **fields)


def incremented(found: TransactionMetadata, expected_epoch: int | None) -> TransitMetadata:
    transit = found.prepare_increment_producer_epoch(2000, expected_epoch, 20)
    assert isinstance(transit, TransitMetadata)
    found.complete_transition_to(transit)
    return transit


def test_a_new_producer_gets_the_next_epoch_and_no_past() -> None:
    found = metadata()
    transit = incremented(found, None)
    assert (transit.producer_epoch, transit.last_producer_epoch, transit.state) == (3, -1, S.EMPTY)
    assert (found.producer_epoch, found.timeout_ms, found.last_update_timestamp_ms) == (3, 2000, 20)
    assert found.pending_state is None


def test_the_first_epoch_is_zero() -> None:
    found = metadata(producer_epoch=-1)
    assert incremented(found, 99).producer_epoch == 0


def test_a_producer_that_goes_on_may_repeat_itself() -> None:
    found = metadata()
    assert incremented(found, 2).last_producer_epoch == 2
    again = incremented(found, 2)
    assert (again.producer_epoch, found.producer_epoch) == (3, 3)


@pytest.mark.parametrize("epoch", [0, 1, 3, 100])
def test_a_producer_of_another_epoch_is_fenced(epoch: int) -> None:
    found = metadata()
    assert found.prepare_increment_producer_epoch(2000, epoch, 20) == ErrorCode.PRODUCER_FENCED
    assert found.pending_state is None


def test_after_a_new_producer_the_old_one_cannot_repeat_itself() -> None:
    found = metadata()
    incremented(found, 2)
    incremented(found, None)
    assert found.prepare_increment_producer_epoch(2000, 2, 20) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("epoch", "exhausted"), [(LAST_EPOCH - 2, False), (LAST_EPOCH - 1, True), (LAST_EPOCH, True)])
def test_one_epoch_is_kept_to_fence_with(epoch: int, exhausted: bool) -> None:
    assert is_epoch_exhausted(epoch) is exhausted
    answer = metadata(producer_epoch=epoch).prepare_increment_producer_epoch(2000, None, 20)
    assert (answer == ErrorCode.UNKNOWN_SERVER_ERROR) is exhausted


def test_the_last_epoch_fences() -> None:
    assert ongoing(producer_epoch=LAST_EPOCH - 1).prepare_fence_producer_epoch().producer_epoch == LAST_EPOCH
    with pytest.raises(IllegalTransitionError):
        ongoing(producer_epoch=LAST_EPOCH).prepare_fence_producer_epoch()


@pytest.mark.parametrize(("record", "last_epoch"), [(True, LAST_EPOCH - 1), (False, -1)])
def test_rotation_gives_a_new_id_from_epoch_zero(record: bool, last_epoch: int) -> None:
    found = metadata(producer_epoch=LAST_EPOCH - 1)
    transit = found.prepare_producer_id_rotation(8, 2000, 20, record_last_epoch=record)
    found.complete_transition_to(transit)
    assert (found.producer_id, found.producer_epoch) == (8, 0)
    assert (found.last_producer_id, found.last_producer_epoch) == (7, last_epoch)


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_ABORT, S.PREPARE_COMMIT])
def test_no_rotation_in_an_open_transaction(state: TransactionState) -> None:
    with pytest.raises(IllegalTransitionError):
        metadata(state).prepare_producer_id_rotation(8, 2000, 20, record_last_epoch=False)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partitions_begin_the_transaction(state: TransactionState) -> None:
    found = metadata(state, start_timestamp_ms=-1 if state is S.EMPTY else 5)
    found.complete_transition_to(found.prepare_add_partitions([P0], 20))
    found.complete_transition_to(found.prepare_add_partitions([P1], 30))
    assert (found.state, found.topic_partitions, found.start_timestamp_ms) == (S.ONGOING, {P0, P1}, 20)


@pytest.mark.parametrize(
    ("prepared", "complete"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_to_the_end(prepared: TransactionState, complete: TransactionState) -> None:
    found = ongoing()
    found.complete_transition_to(found.prepare_abort_or_commit(prepared, 20))
    transit = found.prepare_complete(30)
    assert (transit.state, transit.topic_partitions) == (complete, frozenset())
    found.remove_partition(P0)
    found.complete_transition_to(transit)
    assert (found.state, found.topic_partitions, found.start_timestamp_ms) == (complete, set(), 5)


def test_a_fence_that_failed_uses_its_epoch_again() -> None:
    found = ongoing()
    fence = found.prepare_fence_producer_epoch()
    found.begin_fenced_abort(fence.producer_epoch)
    found.has_failed_epoch_fence = True
    assert found.prepare_fence_producer_epoch().producer_epoch == 3
    found.begin_fenced_abort(3)
    found.complete_transition_to(found.prepare_abort_or_commit(S.PREPARE_ABORT, 20))
    found.prepare_complete(30)
    assert not found.has_failed_epoch_fence


def test_one_change_at_a_time() -> None:
    found = ongoing()
    found.prepare_add_partitions([P1], 20)
    with pytest.raises(IllegalTransitionError, match="while Ongoing is pending"):
        found.prepare_abort_or_commit(S.PREPARE_COMMIT, 20)


@pytest.mark.parametrize("state", [state for state in S if state not in VALID_PREVIOUS[S.ONGOING]])
def test_a_state_that_does_not_follow(state: TransactionState) -> None:
    with pytest.raises(IllegalTransitionError, match="cannot go from"):
        metadata(state).prepare_add_partitions([P0], 20)


@pytest.mark.parametrize(
    "changed",
    [
        {"state": S.COMPLETE_COMMIT},
        {"producer_id": 8},
        {"producer_epoch": 3},
        {"timeout_ms": 1},
        {"topic_partitions": frozenset()},
    ],
)
def test_what_was_not_prepared_is_not_completed(changed: dict[str, Any]) -> None:
    found = ongoing()
    transit = found.prepare_add_partitions([P1], 20)
    with pytest.raises(IllegalTransitionError):
        found.complete_transition_to(transit._replace(**changed))


@pytest.mark.parametrize(
    "changed", [{"topic_partitions": frozenset([P1])}, {"start_timestamp_ms": 1}, {"producer_epoch": 9}]
)
def test_a_decision_changes_nothing_else(changed: dict[str, Any]) -> None:
    found = ongoing()
    transit = found.prepare_abort_or_commit(S.PREPARE_COMMIT, 20)
    with pytest.raises(IllegalTransitionError):
        found.complete_transition_to(transit._replace(**changed))


def test_the_dead_and_the_fenced_are_never_completed() -> None:
    for found, transit in (
        (dying := metadata(), dying.prepare_dead()),
        (fenced := ongoing(), fenced.prepare_fence_producer_epoch()),
    ):
        with pytest.raises(IllegalTransitionError):
            found.complete_transition_to(transit)


def test_an_id_that_never_had_an_epoch_may_die() -> None:
    assert metadata(producer_epoch=-1).prepare_dead().producer_epoch == -1
    with pytest.raises(IllegalTransitionError, match="has no producer id and epoch"):
        metadata(producer_epoch=-1).prepare_add_partitions([P0], 20)


def test_partitions_go_only_while_markers_are_written() -> None:
    with pytest.raises(IllegalTransitionError):
        ongoing().remove_partition(P0)
