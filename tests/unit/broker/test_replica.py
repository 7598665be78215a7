"""What a leader concludes from one follower's fetches."""

from __future__ import annotations

from odradek.broker.replica import Replica
from odradek.storage.offsets import LogOffsetMetadata


def at(offset: int) -> LogOffsetMetadata:
    return LogOffsetMetadata(offset)


def test_replica_under_constant_load_counts_as_caught_up_when_it_reaches_the_previous_end() -> None:
    replica = Replica(2)
    replica.record_fetch(at(0), 0, 1_000, 10)
    assert replica.last_caught_up_ms == 0
    replica.record_fetch(at(10), 0, 2_000, 20)
    assert replica.last_caught_up_ms == 1_000
    replica.record_fetch(at(20), 0, 3_000, 20)
    assert replica.last_caught_up_ms == 3_000


def test_new_leader_epoch_starts_over() -> None:
    replica = Replica(2)
    replica.record_fetch(at(5), 0, 7, 5)
    replica.reset(now_ms=50, leader_log_end_offset=9, is_new_leader=True, is_in_isr=True)
    assert replica.log_end_offset is None
    assert replica.last_caught_up_ms == 50
    replica.reset(now_ms=60, leader_log_end_offset=9, is_new_leader=False, is_in_isr=False)
    assert replica.last_caught_up_ms == 0
    assert replica.last_fetch_leader_log_end_offset == 9


def test_a_place_in_files_that_were_replaced_is_forgotten() -> None:
    replica = Replica(2)
    replica.forget_position()
    assert replica.log_end_offset is None
    replica.record_fetch(LogOffsetMetadata(5, 3, 100), 0, 0, 5)
    replica.forget_position()
    assert replica.log_end_offset == at(5)
