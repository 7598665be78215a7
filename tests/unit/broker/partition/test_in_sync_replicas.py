"""The ISR and the high watermark, over real logs; the test takes the part of the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.broker.partition.in_sync_replicas import InSyncReplicas
from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas, offsets_of

NONE = ErrorCode.NONE
LAG_MS = 30_000


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def in_sync(replicas: Replicas) -> InSyncReplicas:
    return replicas.manager.partition(TP).in_sync


def log_of(replicas: Replicas) -> UnifiedLog:
    log = replicas.manager.partition(TP).log
    assert log is not None
    return log


def append(replicas: Replicas, count: int) -> None:
    replicas.append(batch(*[b"x"] * count))


def proposed(replicas: Replicas) -> list[tuple[int, ...]]:
    return [proposal.proposed.isr for proposal in replicas.proposals]


# The high watermark


def test_a_consumer_sees_what_every_replica_in_sync_has(replicas: Replicas) -> None:
    """End offsets 8, 5 and 7: high watermark 5, and the last record a consumer sees has offset 4."""
    replicas.lead(replicas=[0, 1, 2])
    for _ in range(8):
        append(replicas, 1)
    replicas.fetch(5, replica_id=1)
    assert log_of(replicas).high_watermark == 0, "broker 2 has not fetched yet"
    replicas.fetch(7, replica_id=2)
    (answer,) = replicas.fetch(0)
    assert (answer.high_watermark, offsets_of(answer)) == (5, [0, 1, 2, 3, 4])


def test_high_watermark_stays_while_the_isr_is_too_small(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead(replicas=[0, 1, 2], isr=[0])
    append(replicas, 3)
    assert log_of(replicas).high_watermark == 0
    replicas.fetch(3, replica_id=1)
    assert log_of(replicas).high_watermark == 0, "only proposed"
    replicas.proposals.pop().accept()
    assert log_of(replicas).high_watermark == 3


def test_each_append_reads_the_present_min_isr(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead(replicas=[0, 1], isr=[0])
    assert replicas.append(batch(b"a"), acks=-1)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS
    append(replicas, 1)
    replicas.log_manager.update_topic_config("t", {"min.insync.replicas": "1"})
    assert replicas.append(batch(b"a"), acks=-1)[0].error == NONE
    assert log_of(replicas).high_watermark == 2
    replicas.log_manager.update_topic_config("t", {"min.insync.replicas": "2"})
    assert replicas.append(batch(b"a"), acks=-1)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS


def test_follower_that_is_about_to_join_is_waited_for_unless_it_is_dead(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    append(replicas, 2)
    replicas.fetch(0, replica_id=1)  # behind the high watermark
    replicas.fetch(2, replica_id=1)  # caught up
    replicas.proposals.pop().respond(ErrorCode.INELIGIBLE_REPLICA)
    append(replicas, 1)
    assert log_of(replicas).high_watermark == 2
    replicas.know(TP, replicas=[0])
    append(replicas, 1)
    assert log_of(replicas).high_watermark == 4


def test_high_watermark_is_kept_by_a_new_leader_epoch(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    append(replicas, 3)
    replicas.fetch(2, replica_id=1)
    replicas.follow(epoch=1, partition_epoch=1)
    replicas.lead(epoch=2, partition_epoch=2, replicas=[0, 1])
    assert log_of(replicas).high_watermark == 2
    assert replicas.manager.partition(TP).leader_epoch_start_offset == 3


def test_last_one_in_the_isr_commits_what_it_has_when_it_becomes_leader(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    append(replicas, 3)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1], isr=[0])
    assert log_of(replicas).high_watermark == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 3)),
            st.tuples(st.just("fetch"), st.integers(1, 2), st.integers(0, 12)),
            st.tuples(st.just("wait"), st.sampled_from([1_000, LAG_MS + 1])),
            st.tuples(st.just("answer"), st.sampled_from(["accept", "refuse", "lose"])),
        ),
        max_size=25,
    )
)
def test_high_watermark_never_goes_back_nor_beyond_the_maximal_isr(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    replicas = Replicas(tmp_path_factory.mktemp("hw"))
    replicas.lead(replicas=[0, 1, 2])
    sync, log = in_sync(replicas), log_of(replicas)
    last = 0
    for step in steps:
        match step:
            case ("append", int(count)):
                append(replicas, count)
            case ("fetch", int(broker_id), int(offset)):
                replicas.fetch(min(offset, log.log_end_offset), replica_id=broker_id)
            case ("wait", int(ms)):
                replicas.advance(ms)
                sync.maybe_shrink_isr()
            case ("answer", how) if replicas.proposals:
                proposal = replicas.proposals.pop()
                if how == "accept":
                    proposal.accept()
                elif how == "refuse":
                    proposal.respond(ErrorCode.INELIGIBLE_REPLICA)
        assert log.high_watermark >= last
        if log.high_watermark > last:
            ends = [log.log_end_offset]
            for broker_id in sync.state.maximal_isr:
                if broker_id != 0:
                    end = sync.replicas[broker_id].log_end_offset
                    ends.append(-1 if end is None else end.message_offset)
            assert log.high_watermark <= min(ends)
        last = log.high_watermark
        assert set(sync.isr) <= set(sync.state.maximal_isr)
        assert 0 in sync.isr


# Joining


def test_follower_joins_when_it_reaches_the_high_watermark(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1, 2], isr=[0, 2], partition_epoch=7)
    append(replicas, 3)
    replicas.fetch(2, replica_id=2)
    replicas.fetch(1, replica_id=1)
    assert proposed(replicas) == []
    replicas.fetch(2, replica_id=1)
    (proposal,) = replicas.proposals
    assert (proposal.topic_partition, proposal.topic_id) == (TP, TOPIC_ID)
    assert proposal.proposed == LeaderAndIsr(leader=0, isr=(0, 2, 1), partition_epoch=7)
    proposal.accept()
    assert in_sync(replicas).isr == (0, 2, 1)
    assert replicas.manager.partition(TP).partition_epoch == 8


def test_high_watermark_alone_is_not_enough_in_a_new_leader_epoch(replicas: Replicas) -> None:
    """Between the high watermark and the start of the epoch there may be records that were committed before."""
    replicas.lead(replicas=[0, 1, 2])
    append(replicas, 3)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1, 2], isr=[0, 2])
    assert log_of(replicas).high_watermark == 0
    replicas.fetch(2, replica_id=1)
    assert proposed(replicas) == []
    replicas.fetch(3, replica_id=1)
    assert proposed(replicas) == [(0, 2, 1)]


def test_dead_brokers_do_not_join(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.know(TP, replicas=[0])
    replicas.fetch(0, replica_id=1)
    assert proposed(replicas) == []
    replicas.know(TP, replicas=[0, 1])
    replicas.fetch(0, replica_id=1)
    assert proposed(replicas) == [(0, 1)]


def test_one_change_at_a_time(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1, 2], isr=[0])
    replicas.fetch(0, replica_id=1)
    replicas.fetch(0, replica_id=2)
    replicas.advance(2 * LAG_MS)
    in_sync(replicas).maybe_shrink_isr()
    assert proposed(replicas) == [(0, 1)]
    replicas.proposals.pop().accept()
    replicas.fetch(0, replica_id=2)
    assert proposed(replicas) == [(0, 1, 2)]


def test_joining_follower_is_waited_for_before_the_controller_has_confirmed_it(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.fetch(0, replica_id=1)
    assert proposed(replicas) == [(0, 1)]
    answers = replicas.append(batch(b"a"), acks=-1, timeout_ms=2 * LAG_MS)
    replicas.advance(LAG_MS + 1)  # no longer caught up
    in_sync(replicas).maybe_increment_high_watermark()
    assert answers == []
    assert log_of(replicas).high_watermark == 0
    replicas.fetch(1, replica_id=1)
    assert [answer.error for answer in answers] == [NONE]


# Leaving


def test_follower_leaves_when_it_was_not_caught_up_for_too_long(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1, 2])
    append(replicas, 2)
    replicas.fetch(2, replica_id=2)
    replicas.advance(LAG_MS)
    in_sync(replicas).maybe_shrink_isr()
    assert proposed(replicas) == []
    replicas.advance(1)
    for _ in range(2):
        in_sync(replicas).maybe_shrink_isr()
    assert proposed(replicas) == [(0, 2)], "broker 2 has everything, so the time of its last fetch does not count"


def test_leaving_follower_is_waited_for_until_the_controller_has_confirmed_it(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1])
    answers = replicas.append(batch(b"a"), acks=-1, timeout_ms=2 * LAG_MS)
    replicas.advance(LAG_MS + 1)
    in_sync(replicas).maybe_shrink_isr()
    assert (log_of(replicas).high_watermark, answers) == (0, [])
    replicas.proposals.pop().accept()
    assert log_of(replicas).high_watermark == 1
    assert [answer.error for answer in answers] == [NONE]


def test_isr_that_shrinks_below_the_minimum_after_the_append(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead(replicas=[0, 1])
    append(replicas, 1)
    replicas.fetch(1, replica_id=1)
    append(replicas, 1)
    replicas.advance(LAG_MS + 1)
    in_sync(replicas).maybe_shrink_isr()
    replicas.proposals.pop().accept()
    assert in_sync(replicas).check_enough_replicas_reach_offset(1) == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert in_sync(replicas).check_enough_replicas_reach_offset(2) == (False, NONE)
    assert replicas.append(batch(b"a"), acks=-1)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS


def test_replica_that_is_about_to_join_counts_for_an_append_that_is_committed(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead(replicas=[0, 1])
    append(replicas, 1)
    replicas.fetch(1, replica_id=1)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1], isr=[0])
    assert in_sync(replicas).check_enough_replicas_reach_offset(1) == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    replicas.fetch(1, replica_id=1)
    assert in_sync(replicas).check_enough_replicas_reach_offset(1) == (True, NONE), "proposed"
    assert replicas.append(batch(b"a"), acks=-1)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS, "not confirmed"


def test_a_topic_has_to_have_no_more_in_sync_replicas_than_replicas(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, {"min.insync.replicas": "2"})
    replicas.lead()
    assert replicas.append(batch(b"a"), acks=-1)[0].error == NONE
    assert log_of(replicas).high_watermark == 1


def test_member_of_the_isr_that_is_no_replica_leaves(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0, 1, 2])
    in_sync(replicas).maybe_shrink_isr()
    assert proposed(replicas) == [(0, 1)]


def test_only_leaders_shrink(replicas: Replicas) -> None:
    replicas.follow()
    replicas.advance(2 * LAG_MS)
    in_sync(replicas).maybe_shrink_isr()
    assert proposed(replicas) == []


# Answers


def test_refused_change_can_be_proposed_again(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    for error in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED):
        replicas.fetch(0, replica_id=1)
        assert in_sync(replicas).state.maximal_isr == (0, 1)
        replicas.proposals.pop().respond(error)
        assert in_sync(replicas).state.maximal_isr == (0,)


def test_unexpected_error_proposes_the_same_again(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.fetch(0, replica_id=1)
    replicas.proposals.pop().respond(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert proposed(replicas) == [(0, 1)]
    replicas.proposals.pop().accept()
    assert in_sync(replicas).isr == (0, 1)


def test_leader_that_is_behind_waits_for_the_controller(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.fetch(0, replica_id=1)
    replicas.proposals.pop().respond(ErrorCode.INVALID_UPDATE_VERSION)
    replicas.fetch(0, replica_id=1)
    assert proposed(replicas) == []
    assert in_sync(replicas).state.is_inflight
    replicas.lead(epoch=1, partition_epoch=2, replicas=[0, 1], isr=[0])
    assert not in_sync(replicas).state.is_inflight


@pytest.mark.parametrize("answer", ["accept", "error"])
def test_answer_that_comes_after_a_new_leader_epoch_is_ignored(replicas: Replicas, answer: str) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.fetch(0, replica_id=1)
    replicas.lead(epoch=1, partition_epoch=1, replicas=[0, 1], isr=[0])
    proposal = replicas.proposals.pop()
    if answer == "accept":
        proposal.accept()
    else:
        proposal.respond(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert in_sync(replicas).isr == (0,)
    assert proposed(replicas) == []


def test_answer_that_comes_to_a_follower_is_ignored(replicas: Replicas) -> None:
    replicas.lead(replicas=[0, 1], isr=[0])
    replicas.fetch(0, replica_id=1)
    replicas.follow(epoch=1, partition_epoch=1)
    replicas.proposals.pop().accept()
    assert in_sync(replicas).isr == ()


# Forged and late fetches (CVE-2018-1288)


def state_of(replicas: Replicas) -> tuple[object, ...]:
    sync, log = in_sync(replicas), log_of(replicas)
    return log.high_watermark, sync.isr, sync.state, [str(replica) for replica in sync.replicas.values()]


@pytest.mark.parametrize(
    ("fetch", "error"),
    [
        ({"replica_id": 9}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replica_id": 9, "epoch": 3}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica_id": 0}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replica_id": 1, "epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"replica_id": 1, "epoch": 4}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica_id": 1, "epoch": 3, "replica_epoch": 99}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"replica_id": 1, "offset": 4}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"replica_id": 1, "topic_id": b"?" * 16}, ErrorCode.INCONSISTENT_TOPIC_ID),
        ({"replica_id": 1, "last_fetched_epoch": 7}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"replica_id": 1, "last_fetched_epoch": 2}, NONE),  # diverges
    ],
)
def test_fetch_that_is_not_our_followers_moves_nothing(
    replicas: Replicas, fetch: dict[str, object], error: ErrorCode
) -> None:
    replicas.lead(replicas=[0, 1], epoch=2)
    append(replicas, 1)
    replicas.lead(replicas=[0, 1], epoch=3, partition_epoch=1)
    append(replicas, 2)
    replicas.fetch(1, replica_id=1, replica_epoch=100)
    before = state_of(replicas)
    asked = {"offset": 3, **fetch}
    (answer,) = replicas.fetch(asked.pop("offset"), **asked)  # type: ignore[arg-type]
    assert answer.error == error
    assert answer.size_in_bytes == 0
    assert state_of(replicas) == before
    replicas.fetch(3, replica_id=1, replica_epoch=100, epoch=3, last_fetched_epoch=3)
    assert log_of(replicas).high_watermark == 3


def test_fetch_that_has_waited_is_not_counted_twice(replicas: Replicas) -> None:
    """A follower's fetch is recorded when it arrives, not when it is answered."""
    replicas.lead(replicas=[0, 1])
    waiting = replicas.fetch(0, replica_id=1, max_wait_ms=500)
    replicas.advance(100)
    append(replicas, 1)
    assert len(waiting) == 1
    replica = in_sync(replicas).replicas[1]
    assert replica.last_fetch_ms == replicas.disk.clock.monotonic_ms() - 100
