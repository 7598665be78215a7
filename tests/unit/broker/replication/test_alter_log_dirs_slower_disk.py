"""A move to a slower disk ends although the faster one goes on flushing, and every producer is answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.replication.alter_log_dirs import HOLD_MAX_MS
from odradek.protocol.errors import ErrorCode
from tests.support.disks.logs import DeferredIoPool, batch
from tests.support.in_process.replication.moving import Moving

NONE = ErrorCode.NONE
VALUES = [b"%d" % number for number in range(10)]


class SlowDisk:
    """A partition with `flush.messages=1` on a disk that is done at once, which moves to one that needs `pool.run_all`
    for an fsync.
    """

    def __init__(self, path: Path) -> None:
        self.moving = Moving(path, {"flush.messages": "1"})
        self.moving.lead()
        self.moving.append(*VALUES)
        self.pool = DeferredIoPool()
        assert self.moving.alter(1) == NONE
        flusher = self.moving.future().flusher
        flusher._environment = replace(flusher._environment, io_pool=self.pool)
        self.answers: list[list[LogAppendResult]] = []

    def round(self) -> None:
        """Something is appended, and time passes."""
        self.answers.append(self.moving.replicas.append(batch(b"meanwhile")))
        self.moving.replicas.advance(1)

    def until_an_answer_waits(self) -> None:
        for _ in range(20):
            self.round()
            if not self.answers[-1]:
                return
        raise AssertionError("nobody waits for the slower disk")


def test_a_move_to_a_slower_disk_ends_though_the_faster_one_is_flushed_with_each_append(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path)
    for number in range(1, 60):
        disk.round()
        if number % 5 == 0:
            disk.pool.run_all()
    assert disk.moving.where() == 1
    disk.pool.run_all()
    assert [len(answers) for answers in disk.answers] == [1] * 59
    assert disk.moving.log().recovery_point == disk.moving.log().log_end_offset == 10 + 59


def test_producers_that_wait_during_the_hold_are_answered_by_the_new_log(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path)
    disk.until_an_answer_waits()
    assert disk.moving.where() == 0
    disk.pool.run_one()
    for _ in range(3):
        disk.moving.replicas.advance(1)
    assert (disk.moving.where(), disk.answers[-1]) == (1, []), "its records are not on the new disk"
    disk.pool.run_all()
    assert [answer.error for answer in disk.answers[-1]] == [NONE]


def test_a_disk_that_does_not_come_back_is_not_waited_for_any_longer(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path)
    disk.until_an_answer_waits()
    disk.moving.replicas.advance(HOLD_MAX_MS)
    assert disk.answers[-1], "the disk it is on has it"


def test_a_move_that_is_given_up_lets_the_log_be_flushed(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path)
    disk.until_an_answer_waits()
    assert disk.moving.alter(0) == NONE
    assert disk.answers[-1]
