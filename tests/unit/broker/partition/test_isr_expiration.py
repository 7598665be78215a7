"""Followers that stop fetching leave the ISR; how often the timer checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.partition.in_sync_replicas import InSyncReplicas
from odradek.broker.partition.isr_expiration import IsrExpiration
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TP, Replicas

LAG_MS = 30_000
OTHER = TopicPartition("t", 1)


def test_silent_follower_leaves_the_isr_by_itself(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.manager.startup()
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    for _ in range(2):
        replicas.advance(LAG_MS // 2)
    assert replicas.proposals == [], "not caught up for 30 s, and not longer"
    replicas.advance(LAG_MS // 2)
    assert [proposal.proposed.isr for proposal in replicas.proposals] == [(0,)]


def test_no_check_after_shutdown(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.manager.startup()
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a"))
    replicas.manager.shutdown()
    replicas.advance(3 * LAG_MS)
    assert replicas.proposals == []
    assert replicas.manager.partition(TP).is_leader


@pytest.mark.parametrize(("lag_ms", "expected"), [(30_000, 15_000), (1, 1)])
def test_twice_in_the_lag_that_is_allowed(lag_ms: int, expected: int) -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    looked: list[int] = []

    def partitions() -> tuple[()]:
        looked.append(clock.monotonic_ms())
        return ()

    start_ms = clock.monotonic_ms()
    IsrExpiration(partitions, timer, lag_ms).begin()
    for _ in range(2):
        clock.advance(expected)
        timer.advance()
    assert [ms - start_ms for ms in looked] == [expected, 2 * expected]


def test_a_look_that_fails_keeps_it_neither_from_the_other_partitions_nor_from_looking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = Replicas(tmp_path)
    replicas.manager.startup()
    for tp in (TP, OTHER):
        replicas.lead(tp, replicas=[0, 1])
    looked: list[TopicPartition] = []

    def look(in_sync: InSyncReplicas) -> None:
        looked.append(in_sync._leadership.topic_partition)
        raise ValueError("a bug")

    monkeypatch.setattr(InSyncReplicas, "maybe_shrink_isr", look)
    for _ in range(2):
        with pytest.raises(ExceptionGroup):
            replicas.advance(LAG_MS // 2)
        with pytest.raises(ExceptionGroup):
            replicas.advance(1)
    assert sorted(looked) == [TP, TP, OTHER, OTHER]
