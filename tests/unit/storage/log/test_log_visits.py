"""Walks over logs: a few logs per callback."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.log_visits import LogVisits
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.logs import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def logs(disk: Disk) -> list[UnifiedLog]:
    return [disk.log(tp=TopicPartition("topic", number)) for number in range(5)]


def test_a_few_at_a_time_and_then_done(disk: Disk, logs: list[UnifiedLog]) -> None:
    visits = LogVisits(disk.timer)
    visits.walks.at_once = 2
    seen: list[object] = []
    visits.visit(logs, seen.append, lambda: seen.append("done"))
    counts = [len(seen)]
    for _ in range(2):
        disk.advance(1)
        counts.append(len(seen))
    assert counts == [2, 4, 6]
    assert set(seen[:5]) == set(logs)
    assert seen[5] == "done"
    assert len(logs) == 5, "the list is the caller's"


def test_closed_logs_are_passed_over(disk: Disk, logs: list[UnifiedLog]) -> None:
    logs[1].discard()
    seen: list[UnifiedLog] = []
    LogVisits(disk.timer).visit(logs, seen.append)
    assert len(seen) == 4
    assert logs[1] not in seen


def test_nothing_is_visited_after_the_end(disk: Disk, logs: list[UnifiedLog]) -> None:
    visits = LogVisits(disk.timer)
    visits.walks.at_once = 1
    seen: list[UnifiedLog] = []
    visits.visit(logs, seen.append)
    visits.stop()
    disk.advance(10)
    assert len(seen) == 1


def test_one_bad_visit_does_not_end_the_walk(disk: Disk, logs: list[UnifiedLog]) -> None:
    visits = LogVisits(disk.timer)
    visits.walks.at_once = 1
    seen: list[UnifiedLog] = []

    def look(log: UnifiedLog) -> None:
        seen.append(log)
        if len(seen) == 1:
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        visits.visit(logs, look)
    for _ in range(4):
        disk.advance(1)
    assert len(seen) == 5
