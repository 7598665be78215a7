"""Where logs are loaded and how many at a time, and starts that fail or are cancelled."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.disk.ports import WorkerError
from odradek.storage.manager import log_startup
from odradek.storage.manager.log_startup import WARM_CALLS_MAX
from odradek.storage.recovery.recovery_job import RecoveryProgress, Unloadable, recover_log
from tests.support.disks.logs import DeferredIoPool, append, read_all, values_of
from tests.support.disks.managed_logs import Broker, DeferredWorkers, create
from tests.support.disks.unreadable import make_unreadable

LOGS = [TopicPartition("a", number) for number in range(4)]


@pytest.fixture(autouse=True)
def every_scan_goes_to_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_startup, "INLINE_SCAN_BYTES", 0)


def make_logs(path: Path, *partitions: TopicPartition, clean: bool = False) -> None:
    broker = Broker(path)
    manager = broker.start()
    create(manager, *partitions)
    for partition in partitions:
        log = manager.get_log(partition)
        assert log is not None
        append(log, str(partition).encode())
    if clean:
        manager.shutdown()
    else:
        broker.kill()


class Start:
    """A start whose workers the test controls."""

    def __init__(self, *paths: Path, threads: int = 1) -> None:
        self.workers = DeferredWorkers()
        self.broker = Broker(*paths, workers=self.workers, recovery_threads_per_data_dir=threads)
        self.manager = self.broker.manager
        self.outcome: list[BaseException | None] = []
        self.manager.begin_startup({}, self.outcome.append)

    @property
    def partitions(self) -> list[TopicPartition]:
        return [log.topic_partition for log in self.manager.all_logs()]

    def is_clean(self, path: Path) -> bool:
        return (path / ".kafka_cleanshutdown").exists()


def test_logs_are_recovered_in_workers_as_many_at_a_time_as_there_are_threads(tmp_path: Path) -> None:
    make_logs(tmp_path, *LOGS)
    start = Start(tmp_path, threads=2)
    assert [job.argument.topic_partition for job in start.workers.jobs] == LOGS[:2]
    start.workers.jobs[1].run()
    assert len(start.workers.jobs) == 3
    assert (start.partitions, start.outcome) == ([LOGS[1]], [])
    for number in (0, 2, 3):
        start.workers.jobs[number].run()
    assert start.outcome == [None]
    assert sorted(start.partitions) == LOGS
    log = start.manager.get_log(LOGS[3])
    assert log is not None
    assert values_of(read_all(log)) == [b"a-3"]
    assert log.recovery_point == 0, "recovery does not flush the recovered records"
    start.manager.shutdown()
    assert start.is_clean(tmp_path)


def test_directories_are_recovered_in_parallel(tmp_path: Path) -> None:
    make_logs(tmp_path / "1", LOGS[0])
    make_logs(tmp_path / "2", LOGS[1])
    start = Start(tmp_path / "1", tmp_path / "2")
    assert [job.argument.topic_partition for job in start.workers.jobs] == LOGS[:2]
    for job in start.workers.jobs:
        job.run()
    assert start.outcome == [None]
    start.manager.shutdown()


def test_clean_and_small_logs_are_loaded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_logs(tmp_path / "clean", *LOGS, clean=True)
    start = Start(tmp_path / "clean")
    assert (start.workers.jobs, start.outcome, len(start.partitions)) == ([], [None], 4)
    start.manager.shutdown()
    make_logs(tmp_path / "killed", LOGS[0])
    monkeypatch.setattr(log_startup, "INLINE_SCAN_BYTES", 1000)
    start = Start(tmp_path / "killed")
    assert (start.workers.jobs, start.outcome, start.partitions) == ([], [None], LOGS[:1])
    start.manager.shutdown()


def test_loop_runs_between_slices(tmp_path: Path) -> None:
    make_logs(tmp_path, *LOGS, clean=True)
    broker = Broker(tmp_path)
    outcome: list[BaseException | None] = []
    broker.manager.begin_startup({}, outcome.append, slice_ms=0)
    for _ in ["the checkpoints", *LOGS]:  # one is listed per slice, and then one is opened per slice
        assert (broker.manager.all_logs(), outcome) == ([], [])
        broker.disk.advance(1)
    for loaded in range(1, 5):
        assert (len(broker.manager.all_logs()), outcome) == (loaded, [])
        broker.disk.advance(1)
    assert outcome == [None]
    broker.manager.shutdown()


def test_a_start_that_is_broken_off_among_the_names_leaves_a_clean_directory_clean(tmp_path: Path) -> None:
    make_logs(tmp_path, *LOGS, clean=True)
    broker = Broker(tmp_path)
    outcome: list[BaseException | None] = []
    broker.manager.begin_startup({}, outcome.append, slice_ms=0)
    broker.disk.advance(1)
    broker.manager.shutdown()
    broker.disk.advance(1)
    assert (broker.manager.all_logs(), outcome) == ([], [])
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_recoveries_that_end_meanwhile_make_no_further_slices(tmp_path: Path) -> None:
    make_logs(tmp_path, *LOGS)
    workers = DeferredWorkers()
    broker = Broker(tmp_path, workers=workers, recovery_threads_per_data_dir=len(LOGS))
    outcome: list[BaseException | None] = []
    broker.manager.begin_startup({}, outcome.append, slice_ms=0)
    while len(workers.jobs) < len(LOGS):
        broker.disk.advance(1)
    for job in workers.jobs:
        job.run()
    loaded = []
    while not outcome:
        loaded.append(len(broker.manager.all_logs()))
        broker.disk.advance(1)
    assert loaded == [0, 1, 2, 3, 4], "one log per slice, and one slice per callback"
    broker.manager.shutdown()


@pytest.mark.parametrize(
    ("result", "reason"),
    [(WorkerError("the worker has died"), "the worker has died"), (Unloadable("two leaders"), "two leaders")],
)
def test_bug_or_contradiction_refuses_the_start(tmp_path: Path, result: object, reason: str) -> None:
    make_logs(tmp_path, *LOGS[:2])
    start = Start(tmp_path)
    start.workers.jobs[0].done(result)
    [error] = start.outcome
    assert isinstance(error, LogDirError)
    assert f"a-0 cannot be loaded: {reason}" in str(error)
    assert len(start.workers.jobs) == 1
    Broker(tmp_path).start().shutdown()  # the lock is free, and the logs are as they were


def test_io_error_fails_the_directory_when_its_other_logs_have_been_tried(tmp_path: Path) -> None:
    make_logs(tmp_path / "1", *LOGS[:2])
    make_logs(tmp_path / "2", LOGS[2])
    start = Start(tmp_path / "1", tmp_path / "2")
    first, other = start.workers.jobs
    first.done(OSError(5, "Input/output error"))
    assert start.manager.log_dirs[0].is_online
    other.run()
    start.workers.jobs[2].run()
    assert start.outcome == [None]
    assert [log_dir.is_online for log_dir in start.manager.log_dirs] == [False, True]
    assert start.partitions == [LOGS[2]]
    start.manager.shutdown()
    assert not start.is_clean(tmp_path / "1")


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_index_that_cannot_be_read_fails_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """The start after a kill reads the ends of the indexes below the recovery point."""
    broker = Broker(tmp_path / "1", tmp_path / "2")
    manager = broker.start({"a": {"index.interval.bytes": "0"}})
    create(manager, *LOGS[:2])
    for log in manager.all_logs():
        append(log, b"x")
        append(log, b"y")
        log.roll()
        append(log, b"z")
    manager.checkpoint_recovery_points()
    broker.kill()
    make_unreadable(monkeypatch, tmp_path / "1", suffix)
    again = Broker(tmp_path / "1", tmp_path / "2").start()
    assert [log_dir.is_online for log_dir in again.log_dirs] == [False, True]
    assert len(again.all_logs()) == 1
    again.shutdown()


def test_start_without_a_directory_left_is_refused(tmp_path: Path) -> None:
    make_logs(tmp_path, LOGS[0])
    start = Start(tmp_path)
    start.workers.jobs[0].done(OSError(5, "Input/output error"))
    [error] = start.outcome
    assert "None of the log directories can be used" in str(error)


def test_start_that_is_broken_off_leaves_what_was_clean_clean(tmp_path: Path) -> None:
    make_logs(tmp_path / "clean", *LOGS[:2], clean=True)
    make_logs(tmp_path / "killed", LOGS[2])
    start = Start(tmp_path / "clean", tmp_path / "killed")
    assert not start.is_clean(tmp_path / "clean")
    start.manager.shutdown()
    assert start.workers.jobs[0].is_cancelled
    assert (start.is_clean(tmp_path / "clean"), start.is_clean(tmp_path / "killed")) == (True, False)
    start.workers.jobs[0].done(WorkerError("killed"))
    assert start.outcome == []


def test_log_that_was_being_rebuilt_is_not_called_clean(tmp_path: Path) -> None:
    """A worker that is killed may leave half an index."""
    make_logs(tmp_path, LOGS[0], clean=True)
    (tmp_path / "a-0" / "00000000000000000000.index").unlink()
    start = Start(tmp_path)
    assert len(start.workers.jobs) == 1
    start.manager.shutdown()
    assert not start.is_clean(tmp_path)


def test_progress_is_logged_during_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_logs(tmp_path, *LOGS[:2])
    with caplog.at_level(logging.INFO):
        start = Start(tmp_path)
        start.workers.jobs[0].on_report(RecoveryProgress(3, 50))
        start.broker.disk.advance(5_000)
        assert "2 of 2 logs remain, 3 segments of a-0; recovered 0 of 0 MB, about 9 s left" in caplog.text
        for number in range(2):
            start.workers.jobs[number].run()
        caplog.clear()
        start.broker.disk.advance(5_000)
    assert "remain" not in caplog.text
    assert start.workers.jobs[0].work is recover_log
    start.manager.shutdown()


def test_what_a_log_is_opened_from_is_brought_into_memory_first_and_not_by_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_logs(tmp_path, *LOGS, clean=True)
    monkeypatch.setattr(log_startup, "LOGS_PER_WARM_CALL", 1)
    warmed: list[str] = []

    def warm(paths: list[str]) -> None:
        warmed.extend(Path(path).name for path in paths)

    monkeypatch.setattr(log_startup, "warm_data_dirs", warm)
    monkeypatch.setattr(log_startup, "warm_log_dirs", warm)
    pool, outcome = DeferredIoPool(), list[BaseException | None]()
    manager = Broker(tmp_path, io_pool=pool).manager
    manager.begin_startup({}, outcome.append)
    opened = []
    while not outcome:
        assert len(pool.pending) <= WARM_CALLS_MAX
        pool.run_one()
        opened.append((len(warmed), len(manager.all_logs())))
    assert outcome == [None]
    assert warmed == [tmp_path.name, *map(str, LOGS)]
    assert opened == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    manager.shutdown()


def test_a_start_that_is_broken_off_while_it_waits_for_the_disk_does_nothing_more(tmp_path: Path) -> None:
    make_logs(tmp_path, *LOGS, clean=True)
    pool, outcome = DeferredIoPool(), list[BaseException | None]()
    manager = Broker(tmp_path, io_pool=pool).manager
    manager.begin_startup({}, outcome.append)
    pool.run_one()
    assert pool.pending
    manager.shutdown()
    pool.run_all()
    assert (outcome, manager.all_logs()) == ([], [])
    assert (tmp_path / ".kafka_cleanshutdown").exists()
