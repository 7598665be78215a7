"""What a leader concludes from its followers' fetches."""

from __future__ import annotations

from odradek.broker.isr import Replica, effective_min_isr, high_watermark_candidate
from odradek.storage.offsets import LogOffsetMetadata


def at(offset: int) -> LogOffsetMetadata:
    return LogOffsetMetadata(offset)


def fetched(broker_id: int, offset: int, *, now_ms: int = 0, leader_end: int | None = None) -> Replica:
    replica = Replica(broker_id)
    replica.record_fetch(at(offset), 0, now_ms, offset if leader_end is None else leader_end)
    return replica


def candidate(leader_end: int, replicas: list[Replica], isr: set[int], now_ms: int = 100_000) -> int | None:
    found = high_watermark_candidate(at(leader_end), replicas, frozenset(isr), now_ms, 30_000)
    return None if found is None else found.message_offset


def test_high_watermark_is_the_smallest_end_offset_in_sync() -> None:
    # The worked example: end offsets 8, 5 and 7 give a high watermark of 5, so a consumer sees offsets up to 4.
    replicas = [fetched(2, 5, leader_end=8), fetched(3, 7, leader_end=8)]
    assert candidate(8, replicas, {1, 2, 3}) == 5


def test_replica_out_of_sync_does_not_hold_the_high_watermark_back() -> None:
    assert candidate(8, [fetched(2, 5, leader_end=8)], {1}) == 8


def test_caught_up_replica_outside_the_isr_holds_it_back_so_that_it_can_join() -> None:
    replica = fetched(2, 5, now_ms=90_000, leader_end=5)
    assert candidate(8, [replica], {1}) == 5


def test_replica_that_never_fetched_holds_everything_back() -> None:
    assert candidate(8, [Replica(2)], {1, 2}) is None


def test_replica_under_constant_load_counts_as_caught_up_when_it_reaches_the_previous_end() -> None:
    replica = Replica(2)
    replica.record_fetch(at(0), 0, 1_000, 10)
    assert replica.last_caught_up_ms == 0
    replica.record_fetch(at(10), 0, 2_000, 20)
    assert replica.last_caught_up_ms == 1_000
    replica.record_fetch(at(20), 0, 3_000, 20)
    assert replica.last_caught_up_ms == 3_000


def test_new_leader_epoch_starts_over() -> None:
    replica = fetched(2, 5, now_ms=7)
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


def test_min_isr_is_bounded_by_the_replication_factor() -> None:
    assert effective_min_isr(2, 1) == 1
    assert effective_min_isr(2, 3) == 2
