"""The log cleaner: the choice of the next log, the number of runs, their results, and their cancellation."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.cleaning.clean_job import CleanJob, CleanResult, LastRecord
from odradek.storage.cleaning.log_cleaner import LogCleaner
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.ports import WorkerError
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.compaction.cleaning import HeldWorkers, keep_last
from tests.support.disks.logs import NOW, append, read_all, values_of
from tests.support.disks.managed_logs import Broker, create

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BACKOFF_MS = 1_000


class World:
    """A log manager whose cleaner runs; topic `a` is compacted, `b` is compacted and deleted."""

    def __init__(self, *paths: Path, io_max_bytes_per_second: float = 1e9, **cleaner: int) -> None:
        self.path = paths[0]
        self.workers = HeldWorkers()
        settings = {"backoff_ms": BACKOFF_MS} | cleaner
        config = CleanerConfig(io_max_bytes_per_second=io_max_bytes_per_second, **settings)
        self.broker = Broker(*paths, workers=self.workers, cleaner=config)
        self.manager = self.broker.start(
            {"a": {"cleanup.policy": "compact"}, "b": {"cleanup.policy": "compact,delete", "retention.ms": "-1"}}
        )
        for partition in (A0, A1, B0):
            create(self.manager, partition)
        self.manager.start_background_tasks()

    @property
    def cleaner(self) -> LogCleaner:
        return self.manager.cleaner

    def log(self, partition: TopicPartition) -> UnifiedLog:
        log = self.manager.get_log(partition)
        assert log is not None
        return log

    def fill(self, partition: TopicPartition, segments: int = 3, **kwargs: int) -> UnifiedLog:
        log = self.log(partition)
        for number in range(segments):
            if kwargs:
                kwargs["base_sequence"] = number
            append(log, b"value %d" % number, key=b"key", **kwargs)
            log.roll()
        log.update_high_watermark(log.log_end_offset)
        return log

    def settle(self) -> None:
        for _ in range(20):
            self.broker.disk.advance(0)

    @property
    def cleaning(self) -> list[TopicPartition]:
        return [job.topic_partition for job in self.workers.clean_jobs]

    def finish(self) -> None:
        self.workers.go_on()
        self.settle()

    def checkpoint(self, directory: Path | None = None) -> list[str]:
        return ((directory or self.path) / "cleaner-offset-checkpoint").read_text().splitlines()[2:]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.manager.shutdown()


# -- rounds ---------------------------------------------------------------------------------------------------


def test_a_dirty_log_is_compacted_and_noted(world: World) -> None:
    log = world.fill(A0)
    world.settle()
    assert world.cleaning == [A0]
    assert world.cleaner.is_cleaning(A0)
    before = world.cleaner.last_stats
    world.finish()
    assert world.cleaner.last_stats is not before
    assert values_of(read_all(log)) == [b"value 2"]
    assert world.checkpoint() == ["a 0 3"]
    assert not world.cleaner.is_cleaning(A0)
    world.settle()
    assert world.cleaning == [], "it is clean"


def test_the_filthiest_log_comes_first(world: World) -> None:
    world.fill(A0)
    world.cleaner.checkpoints.update(world.log(A0).log_dir, A0, 1)
    world.fill(A1)
    world.settle()
    assert world.cleaning == [A1]
    assert 0 < world.cleaner.dirtiest_ratio <= 1
    world.finish()
    assert world.cleaning == [A0]


def test_without_a_due_log_the_next_round_begins_after_the_backoff(world: World) -> None:
    world.settle()
    world.fill(A0)
    assert world.cleaner.dirtiest_ratio == 0
    world.broker.disk.advance(BACKOFF_MS - 1)
    assert world.cleaner.since_last_round_ms == BACKOFF_MS - 1
    assert world.cleaning == []
    world.broker.disk.advance(1)
    assert world.cleaning == [A0]


def test_a_backoff_of_zero_leaves_the_event_loop_a_millisecond(tmp_path: Path) -> None:
    world = World(tmp_path, backoff_ms=0)
    world.broker.disk.advance(1)
    world.fill(A0)
    world.broker.disk.advance(0)
    assert world.cleaning == []
    world.broker.disk.advance(1)
    assert world.cleaning == [A0]


def test_as_many_at_a_time_as_there_are_threads(tmp_path: Path) -> None:
    world = World(tmp_path, threads=2)
    for partition in (A0, A1, B0):
        world.fill(partition)
    world.settle()
    assert len(world.cleaning) == 2
    world.workers.jobs.pop(0).go_on()
    world.settle()
    assert len(world.cleaning) == 2
    world.finish()
    world.finish()
    assert sorted(world.checkpoint()) == ["a 0 3", "a 1 3", "b 0 3"]
    world.manager.shutdown()


def test_a_switched_off_cleaner_does_nothing(tmp_path: Path) -> None:
    workers = HeldWorkers()
    broker = Broker(tmp_path, workers=workers, cleaner=CleanerConfig(enable=False))
    manager = broker.start({"a": {"cleanup.policy": "compact"}})
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    log.roll()
    log.update_high_watermark(1)
    manager.start_background_tasks()
    assert not manager.cleaner.is_running
    broker.disk.advance(100_000)
    assert not workers.jobs
    manager.shutdown()


def test_a_job_says_all_a_worker_has_to_know(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        threads=2,
        dedupe_buffer_bytes=1000,
        io_buffer_bytes=400,
        max_message_bytes=7,
        io_max_bytes_per_second=300.0,
    )
    log = world.fill(A0, producer_id=5, producer_epoch=1)
    world.settle()
    (job,) = world.workers.clean_jobs
    assert job.directory == log.dir
    assert (job.base_offsets, job.first_dirty_offset, job.first_uncleanable_offset) == ((0, 1, 2), 0, 3)
    assert job.last_records == {5: LastRecord(2, 1)}
    assert (job.offset_map_bytes, job.io_buffer_bytes, job.now_ms) == (500, 100, NOW)
    assert job.io_max_bytes_per_second == 150.0, "each has an equal part"
    assert job.max_message_bytes == log.config.max_message_bytes
    world.finish()
    world.manager.shutdown()


# -- retention of compacted logs ----------------------------------------------------------------------------------


def test_segments_below_the_log_start_are_deleted(world: World) -> None:
    log = world.fill(A0)
    log.maybe_increment_log_start_offset(2, "test")
    world.settle()
    assert log.segments.base_offsets == [2, 3]


def test_retention_of_a_log_that_is_compacted_too(world: World) -> None:
    log = world.fill(B0)
    world.manager.update_topic_config("b", {"cleanup.policy": "compact,delete", "retention.ms": "5"})
    world.broker.disk.advance(100)
    world.settle()
    assert log.log_start_offset == 3


def test_a_log_under_compaction_loses_nothing_to_retention(world: World) -> None:
    log = world.fill(B0)
    world.settle()
    assert world.cleaning == [B0]
    log.maybe_increment_log_start_offset(2, "test")
    world.broker.disk.advance(BACKOFF_MS)
    assert log.segments.base_offsets == [0, 1, 2, 3]
    world.finish()
    world.settle()
    assert log.segments.base_offsets == [2, 3]


# -- what goes wrong -----------------------------------------------------------------------------------------------


def failing(error: Exception) -> Callable[[CleanJob, Callable[[object], None]], CleanResult]:
    def clean(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
        raise error

    return clean


def test_a_log_whose_compaction_fails_is_not_tried_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.workers.clean = failing(WorkerError("a bug"))
    world.fill(A0)
    world.settle()
    world.finish()
    assert "a bug" in caplog.text
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == []
    world.workers.clean = keep_last
    world.fill(A1)
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == [A1], "the others go on"


def test_what_an_uncleanable_log_has_to_compact(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    log = world.fill(A0)
    assert world.cleaner.uncleanable_bytes(A0) == sum(segment.size for segment in log.segments) > 0
    world.cleaner.checkpoints.update(log.log_dir, A0, 2)
    assert world.cleaner.uncleanable_bytes(A0) == list(log.segments)[2].size
    assert world.cleaner.uncleanable_bytes(TopicPartition("gone", 0)) == 0

    def failing(*arguments: object) -> int:
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr("odradek.storage.cleaning.log_to_clean.cleanable_bytes", failing)
    assert world.cleaner.uncleanable_bytes(A0) == 0


def test_the_longest_delay_is_that_of_the_last_round_with_something_to_do(world: World) -> None:
    world.manager.update_topic_config("a", {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000"})
    world.fill(A0)
    world.settle()
    assert world.cleaner.longest_delay_ms == 0, "it is compacted because of its ratio"
    world.finish()
    world.manager.update_topic_config(
        "a", {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000", "min.cleanable.dirty.ratio": "1"}
    )
    world.fill(A1)
    world.broker.disk.advance(60_000)
    assert world.cleaning == [A1]
    delay_ms = world.cleaner.longest_delay_ms
    assert 58_000 <= delay_ms <= 59_000 + BACKOFF_MS
    world.finish()
    world.broker.disk.advance(10 * BACKOFF_MS)
    assert world.cleaner.longest_delay_ms == delay_ms, "rounds that find nothing do not change it"


def test_the_bytes_of_all_compactions_are_added_up(world: World) -> None:
    def clean(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
        result = keep_last(job, report)
        result.stats.map_bytes_read, result.stats.bytes_read, result.stats.bytes_written = 100, 20, 3
        return result

    world.workers.clean = clean
    for partition, total in ((A0, 123), (A1, 246)):
        world.fill(partition)
        world.broker.disk.advance(BACKOFF_MS)
        world.finish()
        assert world.cleaner.io_bytes == total


def test_a_deleted_log_takes_its_bad_name_along(world: World) -> None:
    world.cleaner.uncleanable.add((str(world.path), A0))
    world.manager.async_delete(A0)
    world.broker.disk.advance(BACKOFF_MS)
    assert not world.cleaner.uncleanable


def test_a_segment_that_cannot_be_read_makes_a_log_uncleanable(world: World) -> None:
    world.manager.update_topic_config("a", {"cleanup.policy": "compact", "max.compaction.lag.ms": "1"})
    log = world.fill(A0)
    with open(os.path.join(log.dir, "00000000000000000000.log"), "r+b") as file:
        file.write(b"\0" * 20)
    log.segments.first._rolling_timestamp = None
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaner.uncleanable == {(str(world.path), A0)}
    assert world.cleaning == []


def test_a_full_directory_is_not_compacted_until_there_is_room(world: World) -> None:
    world.fill(A0)
    world.log(A0).log_dir.space.is_full = True
    world.settle()
    assert world.cleaning == []
    world.log(A0).log_dir.space.is_full = False
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == [A0]


def test_a_failed_directory_is_let_go(world: World) -> None:
    world.fill(A0)
    world.settle()
    log_dir = world.log(A0).log_dir
    log_dir.fail("test", OSError(errno.EIO, "Input/output error"))
    assert world.workers.jobs[0].is_cancelled
    world.finish()
    assert not world.cleaner.is_cleaning(A0)
    assert not (world.path / "cleaner-offset-checkpoint").exists()


# -- who may interrupt ------------------------------------------------------------------------------------------------


def test_truncation_cancels_and_moves_the_checkpoint_down(world: World) -> None:
    world.fill(A0)
    world.settle()
    world.finish()
    world.fill(A0)
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaner.is_cleaning(A0)
    world.manager.truncate_to({A0: 2})
    assert world.workers.jobs[0].is_cancelled
    assert world.checkpoint() == ["a 0 2"]
    world.finish()
    assert world.log(A0).log_end_offset == 2


def test_truncation_of_the_active_segment_is_no_matter(world: World) -> None:
    log = world.fill(A0)
    append(log, b"x", b"y")
    world.settle()
    world.manager.truncate_to({A0: 4})
    assert not world.workers.jobs[0].is_cancelled


def test_full_truncation_cancels_the_run_and_lowers_the_checkpoint(world: World) -> None:
    world.fill(A0)
    world.settle()
    world.finish()
    world.fill(A0)
    world.broker.disk.advance(BACKOFF_MS)
    world.manager.truncate_fully_and_start_at(A0, 1)
    assert world.workers.jobs[0].is_cancelled
    assert world.checkpoint() == ["a 0 1"]
    world.finish()


def test_deletion_cancels_and_removes_the_checkpoint(world: World) -> None:
    world.fill(A0)
    world.settle()
    world.finish()
    world.fill(A0)
    world.broker.disk.advance(BACKOFF_MS)
    world.manager.async_delete(A0)
    assert world.workers.jobs[0].is_cancelled
    assert world.checkpoint() == []
    create(world.manager, A0)
    world.finish()
    assert world.checkpoint() == []
    assert world.log(A0).log_end_offset == 0


def test_a_policy_without_compaction_cancels(world: World) -> None:
    world.fill(A0)
    world.settle()
    world.manager.update_topic_config("a", {"cleanup.policy": "delete"})
    assert world.workers.jobs[0].is_cancelled
    world.finish()
    assert world.cleaning == []


def test_a_policy_with_compaction_begins_it(world: World) -> None:
    world.manager.update_topic_config("a", {})
    world.fill(A0)
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == []
    world.manager.update_topic_config("a", {"cleanup.policy": "compact"})
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == [A0]


def test_a_moved_log_takes_its_checkpoint_along(tmp_path: Path) -> None:
    world = World(tmp_path / "one", tmp_path / "two")
    world.fill(A0)
    world.settle()
    world.finish()
    source, target = world.manager.log_dirs
    world.cleaner.uncleanable.add((source.path, A0))
    world.cleaner.alter_checkpoint_dir(A0, source, target)
    assert world.checkpoint() == []
    assert world.checkpoint(tmp_path / "two") == ["a 0 3"]
    assert world.cleaner.uncleanable == {(target.path, A0)}
    world.manager.shutdown()


def test_a_log_is_left_alone_while_it_moves(tmp_path: Path) -> None:
    world = World(tmp_path / "one", tmp_path / "two")
    world.fill(A0)
    world.settle()
    assert world.cleaning == [A0]
    target = world.manager.log_dirs[1]
    world.manager.maybe_update_preferred_dir(A0, target.path)
    future = world.manager.get_or_create_log(A0, b"\x07" * 16, is_new=True, is_future=True)
    assert world.workers.jobs[0].is_cancelled
    world.finish()
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == []
    for number in range(3):
        append(future, b"value %d" % number, key=b"key")
        future.roll()
    world.cleaner.checkpoints.update(world.log(A0).log_dir, A0, 1)
    world.manager.replace_current_with_future(A0)
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == [A0]
    assert world.workers.clean_jobs[0].directory.startswith(target.path)
    assert world.workers.clean_jobs[0].first_dirty_offset == 1
    world.finish()
    assert world.checkpoint() == []
    assert world.checkpoint(tmp_path / "two") == ["a 0 3"]
    world.manager.shutdown()


def test_a_move_that_is_given_up_ends_the_pause(tmp_path: Path) -> None:
    world = World(tmp_path / "one", tmp_path / "two")
    world.manager.maybe_update_preferred_dir(A0, world.manager.log_dirs[1].path)
    world.manager.get_or_create_log(A0, b"\x07" * 16, is_new=True, is_future=True)
    world.fill(A0)
    world.settle()
    assert world.cleaning == []
    world.manager.async_delete(A0, is_future=True)
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == [A0]
    world.manager.shutdown()


def test_shutdown_cancels_and_begins_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fill(A0)
    world.settle()
    world.manager.shutdown()
    assert world.workers.jobs[0].is_cancelled
    world.finish()
    world.broker.disk.advance(10 * BACKOFF_MS)
    assert world.cleaning == []


def test_the_checkpoint_is_used_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fill(A0)
    world.settle()
    world.finish()
    world.manager.shutdown()
    world = World(tmp_path)
    world.log(A0).update_high_watermark(3)
    world.settle()
    assert world.cleaning == []
    world.manager.shutdown()
