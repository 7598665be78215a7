"""The leader's state of one follower after its fetches."""

from __future__ import annotations

import pytest

from odradek.broker.partition.replica import LONG_AGO_MS, Replica
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.offsets import LogOffsetMetadata


def at(offset: int) -> LogOffsetMetadata:
    return LogOffsetMetadata(offset)


def test_replica_under_constant_load_counts_as_caught_up_when_it_reaches_the_previous_end() -> None:
    replica = Replica(2)
    replica.update_fetch_state(at(0), 0, 1_000, 10)
    assert replica.last_caught_up_ms == LONG_AGO_MS
    replica.update_fetch_state(at(10), 0, 2_000, 20)
    assert replica.last_caught_up_ms == 1_000
    replica.update_fetch_state(at(20), 0, 3_000, 20)
    assert replica.last_caught_up_ms == 3_000


def test_new_leader_epoch_starts_over() -> None:
    replica = Replica(2)
    replica.update_fetch_state(at(5), 0, 7, 5)
    replica.reset_replica_state(now_ms=50, leader_log_end_offset=9, is_new_leader=True, is_in_isr=True)
    assert replica.log_end_offset is None
    assert replica.last_caught_up_ms == 50
    replica.reset_replica_state(now_ms=60, leader_log_end_offset=9, is_new_leader=False, is_in_isr=False)
    assert replica.last_caught_up_ms == LONG_AGO_MS
    assert replica.last_fetch_leader_log_end_offset == 9


def test_a_place_in_files_that_were_replaced_is_forgotten() -> None:
    replica = Replica(2)
    replica.forget_position()
    assert replica.log_end_offset is None
    replica.update_fetch_state(LogOffsetMetadata(5, 3, 100), 0, 0, 5)
    replica.forget_position()
    assert replica.log_end_offset == at(5)


def test_a_fetch_of_an_earlier_life_of_the_broker_moves_nothing() -> None:
    replica = Replica(2)
    replica.update_fetch_state(at(5), 0, 10, 5, 100)
    replica.update_fetch_state(at(6), 0, 20, 6)  # an old version of Fetch, which names no epoch
    with pytest.raises(KafkaError) as refused:
        replica.update_fetch_state(at(7), 3, 30, 7, 99)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (replica.log_end_offset, replica.log_start_offset, replica.last_caught_up_ms) == (at(6), 0, 20)
    for epoch in (100, 101):
        replica.update_fetch_state(at(7), 3, 30, 7, epoch)
    assert replica.broker_epoch == 101


def test_a_new_leader_takes_any_epoch() -> None:
    replica = Replica(2)
    replica.update_fetch_state(at(5), 0, 10, 5, 100)
    replica.reset_replica_state(now_ms=0, leader_log_end_offset=5, is_new_leader=False, is_in_isr=True)
    assert replica.broker_epoch == 100
    replica.reset_replica_state(now_ms=0, leader_log_end_offset=5, is_new_leader=True, is_in_isr=True)
    replica.update_fetch_state(at(5), 0, 10, 5, 99)


def test_a_replica_that_never_caught_up_is_behind_even_when_the_clock_has_just_begun() -> None:
    replica = Replica(2)
    assert not replica.is_caught_up(5, 0, 30_000)
    replica.update_fetch_state(at(0), 0, 0, 5)
    assert not replica.is_caught_up(5, 0, 30_000)
    replica.reset_replica_state(now_ms=0, leader_log_end_offset=5, is_new_leader=True, is_in_isr=False)
    assert not replica.is_caught_up(5, 0, 30_000)
