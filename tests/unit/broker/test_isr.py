"""What a leader concludes from its followers' fetches."""

from __future__ import annotations

from odradek.broker.isr import effective_min_isr, high_watermark_candidate
from odradek.broker.replica import Replica
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


def test_min_isr_is_bounded_by_the_replication_factor() -> None:
    assert effective_min_isr(2, 1) == 1
    assert effective_min_isr(2, 3) == 2
