"""The state machine of the ISR, and the high watermark that it allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.partition.isr import (
    CommittedPartitionState,
    Outcome,
    effective_min_isr,
    high_watermark_candidate,
    outcome,
)
from odradek.broker.partition.replica import Replica
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode
from odradek.storage.offsets import LogOffsetMetadata

LEADER_EPOCH, PARTITION_EPOCH = 5, 9


def at(offset: int) -> LogOffsetMetadata:
    return LogOffsetMetadata(offset)


def fetched(broker_id: int, offset: int) -> Replica:
    replica = Replica(broker_id)
    replica.update_fetch_state(at(offset), 0, 0, offset)
    return replica


def candidate(leader_end: int, replicas: list[Replica], isr: set[int], *, may_join: bool = False) -> int | None:
    found = high_watermark_candidate(at(leader_end), replicas, isr, lambda replica: may_join)
    return None if found is None else found.message_offset


def test_high_watermark_is_the_smallest_end_offset_in_sync() -> None:
    # The worked example: end offsets 8, 5 and 7 give a high watermark of 5, so a consumer sees offsets up to 4.
    assert candidate(8, [fetched(2, 5), fetched(3, 7)], {1, 2, 3}) == 5


def test_replica_out_of_sync_does_not_hold_the_high_watermark_back() -> None:
    assert candidate(8, [fetched(2, 5)], {1}) == 8


def test_replica_that_is_about_to_join_holds_it_back() -> None:
    assert candidate(8, [fetched(2, 5)], {1}, may_join=True) == 5


def test_replica_that_never_fetched_holds_everything_back() -> None:
    assert candidate(8, [Replica(2)], {1, 2}) is None


@given(
    leader_end=st.integers(0, 50),
    ends=st.dictionaries(st.integers(2, 7), st.integers(0, 50)),
    isr=st.frozensets(st.integers(2, 7)),
    joining=st.frozensets(st.integers(2, 7)),
)
def test_candidate_is_the_minimum_over_all_that_count(
    leader_end: int, ends: dict[int, int], isr: frozenset[int], joining: frozenset[int]
) -> None:
    replicas = [fetched(broker_id, end) for broker_id, end in ends.items()]
    found = high_watermark_candidate(at(leader_end), replicas, isr, lambda replica: replica.broker_id in joining)
    expected = min([leader_end, *(end for broker_id, end in ends.items() if broker_id in isr | joining)])
    assert found == at(expected)


def test_min_isr_is_bounded_by_the_replication_factor() -> None:
    assert effective_min_isr(2, 1) == 1
    assert effective_min_isr(2, 3) == 2


# States


def test_expansion_counts_the_new_replica_before_it_is_confirmed() -> None:
    state = CommittedPartitionState((3, 1)).expand(2, 1, LEADER_EPOCH, PARTITION_EPOCH)
    assert (state.isr, state.maximal_isr, state.is_inflight) == ((3, 1), (3, 1, 2), True)
    assert state.sent_leader_and_isr == LeaderAndIsr(leader=1, isr=(3, 1, 2), leader_epoch=5, partition_epoch=9)


def test_shrinking_counts_the_old_replicas_until_it_is_confirmed() -> None:
    state = CommittedPartitionState((3, 1, 2)).shrink((3, 2), 1, LEADER_EPOCH, PARTITION_EPOCH)
    assert (state.isr, state.maximal_isr, state.is_inflight) == ((3, 1, 2), (3, 1, 2), True)
    assert state.sent_leader_and_isr == LeaderAndIsr(leader=1, isr=(1,), leader_epoch=5, partition_epoch=9)


def test_a_refused_proposal_returns_to_the_committed_state() -> None:
    committed = CommittedPartitionState((1, 2))
    for pending in (committed.expand(3, 1, 0, 0), committed.shrink((2,), 1, 0, 0)):
        reverted = pending.last_committed_state
        assert (reverted.isr, reverted.maximal_isr, reverted.is_inflight) == ((1, 2), (1, 2), False)


def test_a_proposal_made_twice_is_two_proposals() -> None:
    committed = CommittedPartitionState((1,))
    assert committed.expand(2, 1, 0, 0) != committed.expand(2, 1, 0, 0)


# Answers


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "expected"),
    [
        (5, 10, Outcome.APPLIED),
        (5, 9, Outcome.APPLIED),
        (5, 8, Outcome.WAIT),
        (4, 10, Outcome.WAIT),
        (6, 10, Outcome.WAIT),
    ],
)
def test_success_counts_when_it_is_of_our_epochs(leader_epoch: int, partition_epoch: int, expected: Outcome) -> None:
    answer = LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=leader_epoch, partition_epoch=partition_epoch)
    assert outcome(answer, LEADER_EPOCH, PARTITION_EPOCH) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, Outcome.NOT_APPLIED),
        (ErrorCode.INELIGIBLE_REPLICA, Outcome.NOT_APPLIED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Outcome.WAIT),
        (ErrorCode.UNKNOWN_TOPIC_ID, Outcome.WAIT),
        (ErrorCode.FENCED_LEADER_EPOCH, Outcome.WAIT),
        (ErrorCode.INVALID_UPDATE_VERSION, Outcome.WAIT),
        (ErrorCode.INVALID_REQUEST, Outcome.WAIT),
        (ErrorCode.NEW_LEADER_ELECTED, Outcome.WAIT),
        (ErrorCode.NOT_CONTROLLER, Outcome.PROPOSE_AGAIN),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Outcome.PROPOSE_AGAIN),
    ],
)
def test_errors(error: ErrorCode, expected: Outcome) -> None:
    assert outcome(error, LEADER_EPOCH, PARTITION_EPOCH) is expected
