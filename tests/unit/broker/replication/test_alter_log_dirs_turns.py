"""Which partition moves next to another log directory, and for how long it keeps its turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from odradek.timer.sampled_rate import SimpleRate
from tests.support.disks.logs import batch
from tests.support.in_process.replication.moving import Moving


def test_the_next_in_the_order_of_names_begins_when_one_is_done(tmp_path: Path) -> None:
    order: list[TopicPartition] = []
    moving = Moving(tmp_path)
    others = [TopicPartition("t", 2), TopicPartition("t", 0), TopicPartition("s", 9)]
    for other in others:
        moving.lead(other)
        moving.append(b"x", tp=other)
    moving.replicas.move_bytes_per_second = -1
    for other in others:
        moving.alter(1, other)
    for _ in range(10):
        moving.replicas.advance(1)
    moving.replicas.move_bytes_per_second = 2**63 - 1
    replace = moving.log_manager.replace_current_with_future

    def noting(tp: TopicPartition) -> UnifiedLog:
        order.append(tp)
        return replace(tp)

    moving.log_manager.replace_current_with_future = noting  # type: ignore[method-assign]
    moving.replicas.advance(1_000)
    moving.settle()
    assert order == [others[0], *sorted(others[1:])], "the first that came had its turn"


def test_a_move_that_waits_for_the_quota_keeps_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all moves would be tried after each back-off, one after the other, and none would come to its end."""
    first, *others = [TopicPartition("t", number) for number in (5, 0, 1, 2, 3, 4)]
    moving = Moving(tmp_path, fetch_max_bytes=2_500)
    for each in (first, *others):
        moving.lead(each)
        moving.append(*([b"x" * 1_000] * 10), tp=each)
    moving.replicas.move_bytes_per_second = 1_000
    for each in (first, *others):
        moving.alter(1, each)
    for _ in range(5):
        moving.replicas.advance(1)
    assert moving.future(first).log_end_offset == 2
    questions: list[SimpleRate] = []
    measure = SimpleRate.measure

    def counted(rate: SimpleRate, now_ms: int) -> float:
        questions.append(rate)
        return measure(rate, now_ms)

    monkeypatch.setattr(SimpleRate, "measure", counted)
    moving.replicas.advance(1_000)
    assert len(questions) == 1
    for _ in range(20):
        moving.replicas.advance(1_000)
        if moving.where(first) == 1:
            break
        assert [moving.future(each).log_end_offset for each in others] == [0] * 5
    assert moving.where(first) == 1


def test_a_move_that_waits_after_an_error_gives_its_turn_to_the_next(tmp_path: Path) -> None:
    others = [TopicPartition("t", number) for number in range(3)]
    moving = Moving(tmp_path)
    for other in others:
        moving.lead(other)
    for other in others[:2]:
        moving.replicas.append(batch(b"a", b"b", b"c"), other)
        moving.log_manager.truncate_to({other: 2})  # the log ends in a gap: its move waits for the next record
    moving.append(b"x", tp=others[2])
    for other in others:
        moving.alter(1, other)
    for _ in range(10):
        moving.replicas.advance(1)
    assert [moving.where(other) for other in others] == [0, 0, 1]
    moves = moving.replicas.manager.moves
    moves.stop(others[0])
    moving.append(b"d", tp=others[1])
    for _ in range(3):
        moving.replicas.advance(1_000)
    assert [moving.where(other) for other in others] == [0, 1, 1]
    moves.resume(moving.partition(others[0]))
    moving.append(b"d", tp=others[0])
    for _ in range(3):
        moving.replicas.advance(1_000)
    assert moving.where(others[0]) == 1
