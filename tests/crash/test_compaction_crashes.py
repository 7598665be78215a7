"""The process dies at every change of a file while compacted segments are put in place, or in the worker.

After the next start the log is the old one, the compacted one, or a part of each: the last value of every key is
there, a deleted key stays deleted, and the cleaner continues.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.cleaning.clean_job import CleanJob, CleanResult
from odradek.storage.cleaning.log_cleaning import clean_log
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager, LogManagerSettings
from tests.support.compaction.cleaning import HeldWorkers
from tests.support.disks.faulty_disk import CrashError, FaultyFileSystem, crash, io_error
from tests.support.disks.logs import NOW, DeferredIoPool, Disk, append, read_all

TP = TopicPartition("topic", 0)
OVERRIDES = {
    "topic": {
        "cleanup.policy": "compact",
        "segment.bytes": "400",
        "index.interval.bytes": "100",
        "file.delete.delay.ms": "10",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "1000",
    }
}
KEYS = 4
ROUNDS = 3
GOES_ON_EVERY = 8
Entry = tuple[int, bytes | None, bytes | None]


class Run:
    """One process with a log manager and a compacted log."""

    def __init__(self, path: Path, fs: FaultyFileSystem | None = None) -> None:
        self.path = path
        self.io_pool = DeferredIoPool()
        self.workers = HeldWorkers(clean_log)
        self.disk = Disk(path, fs=fs or FaultyFileSystem(), io_pool=self.io_pool, workers=self.workers)
        settings = LogManagerSettings(cleaner=CleanerConfig(backoff_ms=1, dedupe_buffer_bytes=10_000))
        self.manager = LogManager([str(path)], {}, self.disk.environment, settings)
        self.truncation: int | None = None
        """The offset the log is being cut at."""
        self.is_truncated = False
        """And that is on the disk: the follower tells its leader no sooner."""

    def open(self) -> UnifiedLog:
        self.manager.startup(OVERRIDES)
        log = self.manager.get_or_create_log(TP, b"\x05" * 16, is_new=True)
        log.update_high_watermark(log.log_end_offset)
        return log

    def step(self) -> None:
        self.disk.advance(1)
        while self.io_pool.pending:
            self.io_pool.run_one()

    def clean(self) -> None:
        """Run the cleaner until no log is due."""
        if not self.manager.cleaner.is_running:
            self.manager.start_background_tasks()
        for _ in range(12):
            self.step()
            self.workers.go_on()

    def die(self) -> None:
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()


def fill(log: UnifiedLog) -> None:
    """Several values of every key in several segments; some keys are deleted at the end."""
    for number in range(ROUNDS * KEYS):
        key = b"key %d" % (number % KEYS)
        is_tombstone = number >= (ROUNDS - 1) * KEYS and number % KEYS < 2
        append(log, None if is_tombstone else b"value %d " % number * 5, key=key, timestamp=NOW + number)
    for number in range(2):  # so that all these records are in inactive segments
        append(log, b"filler %d " % number * 25, key=b"filler")
    log.update_high_watermark(log.log_end_offset)


def entries(log: UnifiedLog) -> list[Entry]:
    return [
        (record.offset, None if record.key is None else bytes(record.key), record.value and bytes(record.value))
        for record in read_all(log)
    ]


def state_of(records: list[Entry]) -> dict[bytes | None, bytes]:
    latest = {key: value for _, key, value in records}
    return {key: value for key, value in latest.items() if value is not None}


class Seed(NamedTuple):
    """The directory of a stopped broker, and the records of its log."""

    path: Path
    records: list[Entry]


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    """A log that was never compacted."""
    run = Run(tmp_path_factory.mktemp("dirty"))
    log = run.open()
    fill(log)
    return stopped(run, log)


@pytest.fixture(scope="module")
def compacted_once(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    """A log that was compacted once; its tombstones may be removed a second later."""
    run = Run(tmp_path_factory.mktemp("compacted"))
    log = run.open()
    fill(log)
    run.clean()
    assert None in [value for _, _, value in entries(log)]
    for _ in range(3):
        append(log, b"more" * 60, key=b"filler")
    return stopped(run, log)


def stopped(run: Run, log: UnifiedLog) -> Seed:
    records = entries(log)
    run.step()
    run.manager.shutdown()
    return Seed(run.path, records)


def check(died: Run, original: list[Entry]) -> None:
    """Check the log after a start; and, in some runs, after another compaction."""
    run = Run(died.path)
    log = run.open()
    found = entries(log)
    assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
    assert set(found) <= set(original)
    if died.truncation is None:
        assert state_of(found) == state_of(original)
    if died.is_truncated:
        assert log.log_end_offset == died.truncation, "what was truncated has come back"
    assert not [name for name in os.listdir(log.dir) if name.endswith((".cleaned", ".swap"))]
    if died.disk.environment.fs.fail_at % GOES_ON_EVERY:
        run.die()
        return
    for _ in range(2):
        run.disk.advance(2_000)
        append(log, b"more" * 60, key=b"filler")
        append(log, b"last" * 60, key=b"filler")
        log.update_high_watermark(log.log_end_offset)
        run.clean()
    again = entries(log)
    assert state_of(again) == {**state_of(found), b"filler": b"last" * 60}
    keys = [key for _, key, _ in again if key != b"filler"]
    assert len(keys) == len(set(keys)), "compaction goes on after the start"
    run.manager.shutdown()


def compaction(run: Run) -> None:
    run.open()
    run.disk.advance(2_000)
    run.clean()


def truncation_meets_compaction(run: Run) -> None:
    """The log is truncated while the new names are being synced."""
    log = run.open()
    run.manager.start_background_tasks()
    run.disk.advance(1)
    run.workers.go_on()
    assert [name for name in os.listdir(log.dir) if name.endswith(".swap")]
    run.truncation = 7
    run.manager.truncate_to({TP: 7})

    def durable(error: OSError | None) -> None:
        run.is_truncated = error is None

    log.log_dir.sync_queue.when_durable(durable)
    for _ in range(5):
        run.step()
    run.manager.shutdown()


Scenario = Callable[[Run], None]


def runs(scenario: Scenario, seed: Path, path: Path, failure: Callable[[], BaseException]) -> Iterator[Run]:
    """A run for each change of a file in the scenario."""
    fs = FaultyFileSystem()
    shutil.copytree(seed, path / "counting")
    run = Run(path / "counting", fs)
    scenario(run)
    run.die()
    assert any("swap" in name for name in fs.operations)
    for point in range(1, fs.count + 1):
        directory = path / f"run-{point}"
        shutil.copytree(seed, directory)
        yield Run(directory, FaultyFileSystem(point, failure))
        shutil.rmtree(directory)


@pytest.mark.parametrize("scenario", [compaction, truncation_meets_compaction], ids=lambda scenario: scenario.__name__)
def test_death_at_every_change(tmp_path: Path, dirty: Seed, scenario: Scenario) -> None:
    for run in runs(scenario, dirty.path, tmp_path, crash):
        with pytest.raises(CrashError):
            scenario(run)
        run.die()
        check(run, dirty.records)


def test_death_at_every_change_while_tombstones_go(tmp_path: Path, compacted_once: Seed) -> None:
    whole = Run(Path(shutil.copytree(compacted_once.path, tmp_path / "whole")))
    log = whole.open()
    whole.disk.advance(2_000)
    whole.clean()
    assert None not in [value for _, _, value in entries(log)]
    whole.die()
    for run in runs(compaction, compacted_once.path, tmp_path, crash):
        with pytest.raises(CrashError):
            compaction(run)
        run.die()
        check(run, compacted_once.records)


def test_io_error_at_every_change(tmp_path: Path, dirty: Seed) -> None:
    """The directory goes offline, and the next start is as after a kill."""
    for run in runs(compaction, dirty.path, tmp_path, io_error):
        with contextlib.suppress(KafkaError, LogDirError):
            compaction(run)
        assert not run.manager.live_log_dirs or run.disk.environment.fs.failed.startswith("unlink")
        run.die()
        check(run, dirty.records)


@pytest.mark.parametrize("kept_bytes", [0, 1, 200, 10_000])
def test_death_of_the_broker_while_a_worker_writes(tmp_path: Path, dirty: Seed, kept_bytes: int) -> None:
    """The files that the worker has written are ignored."""
    run = Run(Path(shutil.copytree(dirty.path, tmp_path / "run")))

    def die(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
        clean_log(job, report)
        for path in Path(job.directory).glob("*.cleaned"):
            os.truncate(path, min(kept_bytes, path.stat().st_size))
        raise CrashError

    run.workers.clean = die
    with pytest.raises(CrashError):
        compaction(run)
    run.die()
    check(run, dirty.records)
