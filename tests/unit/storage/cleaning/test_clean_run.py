"""One compaction, from the worker's job to the segments in place, and the ways it can be interrupted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.storage.cleaning.clean_job import CleanJob, CleanResult, SplitNeeded
from odradek.storage.cleaning.clean_run import CleanRun
from odradek.storage.cleaning.log_to_clean import examine
from odradek.storage.disk.ports import WorkerError
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.compaction.cleaning import HeldWorkers, clean_job, keep_last
from tests.support.disks.logs import NOW, DeferredIoPool, Disk, append, read_all, values_of


class World:
    """A log with segments at 0, 1, 2, 3 (one group of 0 and 1, one of 2) and the run of its compaction."""

    def __init__(
        self, path: Path, clean: Callable[[CleanJob, Callable[[object], None]], CleanResult] = keep_last
    ) -> None:
        self.io_pool = DeferredIoPool()
        self.workers = HeldWorkers(clean)
        self.disk = Disk(path, io_pool=self.io_pool, workers=self.workers)
        self.log = make_log(self.disk)
        self.ended: list[CleanRun] = []
        self.settle()
        found = examine(self.log, None, NOW)
        self.run = CleanRun(self.log, clean_job(found), self.disk.environment, self.ended.append)
        self.run.start(keep_last)

    def settle(self) -> None:
        for _ in range(10):
            self.io_pool.run_all()
            self.disk.advance(0)

    @property
    def leftovers(self) -> list[str]:
        return [name for name in os.listdir(self.log.dir) if name.endswith((".cleaned", ".swap"))]


def make_log(disk: Disk) -> UnifiedLog:
    log = disk.log({"cleanup.policy": "compact"})
    for number in range(4):
        append(log, b"value %d" % number, key=b"key %d" % (number % 2))
        if number < 3:
            log.roll()
    log.update_high_watermark(4)
    return log


def test_groups_are_put_in_place_one_after_the_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.workers.go_on()
    world.settle()
    assert world.ended == [world.run]
    assert world.run.result is not None
    assert world.run.result.next_dirty_offset == 3
    assert world.log.segments.base_offsets == [0, 2, 3]
    assert values_of(read_all(world.log)) == [b"value 1", b"value 2", b"value 3"]
    assert not world.leftovers


def test_cancelled_while_the_worker_computes(tmp_path: Path) -> None:
    world = World(tmp_path)
    (Path(world.log.dir) / "00000000000000000000.log.cleaned").write_bytes(b"half")
    world.run.cancel()
    assert world.workers.jobs[0].is_cancelled
    assert not world.ended, "the worker may still be writing"
    world.workers.go_on()
    world.settle()
    assert world.ended == [world.run]
    assert world.run.result is None
    assert len(read_all(world.log)) == 4
    assert not world.leftovers


def test_cancelled_while_a_name_is_on_its_way_to_the_disk(tmp_path: Path) -> None:
    """No `.swap` file may exist when the log changes next, so that its group is put in place at once."""
    world = World(tmp_path)
    world.workers.go_on()
    assert [name for name in world.leftovers if name.endswith(".log.swap")]
    world.run.cancel()
    assert world.log.segments.base_offsets == [0, 2, 3]
    assert not [name for name in world.leftovers if name.endswith(".swap")]
    world.settle()
    assert world.ended == [world.run]
    assert world.run.result is None, "the second group is not in place"
    assert values_of(read_all(world.log)) == [b"value 1", b"value 2", b"value 3"]
    assert not world.leftovers


def test_cancelled_between_two_groups(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.workers.go_on()
    world.io_pool.run_all()
    world.run.cancel()
    world.run.cancel()
    world.settle()
    assert world.ended == [world.run]
    assert world.run.result is None
    assert not world.leftovers


def test_the_log_moves_away_meanwhile(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.workers.go_on()
    world.run.cancel()
    world.log.rename_dir(str(tmp_path / "topic-0.00000000000000000000000000000000-delete"))
    world.settle()
    assert world.ended == [world.run]
    assert not (tmp_path / "topic-0").exists()


def failing(error: Exception) -> Callable[[CleanJob, Callable[[object], None]], CleanResult]:
    def clean(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
        keep_last(job, report)
        raise error

    return clean


def test_a_bug_ends_the_run_with_an_error(tmp_path: Path) -> None:
    world = World(tmp_path, failing(WorkerError("Traceback ...")))
    world.workers.go_on()
    world.settle()
    assert str(world.ended[0].error) == "Traceback ..."
    assert world.log.log_dir.is_online
    assert not world.leftovers


def test_a_failing_disk_takes_the_directory_offline(tmp_path: Path) -> None:
    world = World(tmp_path, failing(OSError(errno.EIO, "Input/output error")))
    world.workers.go_on()
    world.settle()
    assert world.ended == [world.run]
    assert not world.log.log_dir.is_online


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_failure(tmp_path: Path, number: int) -> None:
    world = World(tmp_path, failing(OSError(number, os.strerror(number))))
    world.workers.go_on()
    world.settle()
    assert world.ended == [world.run]
    assert (world.run.result, world.run.error) == (None, None)
    assert world.log.log_dir.is_online
    assert world.log.log_dir.space.is_full
    assert not world.leftovers


def test_nothing_is_put_in_place_in_a_failed_directory(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.workers.go_on()
    world.log.log_dir.fail("test", OSError(errno.EIO, "Input/output error"))
    world.run.cancel()
    world.settle()
    assert world.ended == [world.run]
    assert world.log.segments.base_offsets == [0, 1, 2, 3]


def test_a_segment_that_overflows_is_split_and_the_log_left_to_another_run(tmp_path: Path) -> None:
    """Other `.cleaned` files are removed first: below the parts, they would mark those as incomplete."""

    def clean(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
        assert keep_last(job, report).groups
        return CleanResult(next_dirty_offset=3, split=SplitNeeded(2))

    world = World(tmp_path, clean)
    before = world.log.segments.get(2)
    world.workers.go_on()
    assert [name for name in world.leftovers if name.endswith(".cleaned")]
    world.settle()
    assert not world.leftovers
    world.workers.go_on()
    world.settle()
    assert world.ended == [world.run]
    assert (world.run.result, world.run.error) == (None, None)
    assert world.log.segments.base_offsets == [0, 1, 2, 3]
    assert world.log.segments.get(2) is not before
    assert len(read_all(world.log)) == 4
    assert not world.leftovers


def test_cancelled_before_the_split_begins(tmp_path: Path) -> None:
    world = World(tmp_path, lambda *_: CleanResult(next_dirty_offset=3, split=SplitNeeded(2)))
    world.workers.go_on()
    world.run.cancel()
    world.settle()
    assert world.ended == [world.run]
    assert not world.workers.jobs
