"""Scenarios that are repeated, each time with a disk that fails at another operation.

A scenario is a function of a `Run`: it opens the log, changes it, shuts down, and sets in the run what was
acknowledged. It runs once to count its operations and then once for each of them. To add one, write the
function and pass it to the functions below.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from tests.support.disks.faulty_disk import CHANGES, CrashError, FaultyFileSystem, crash
from tests.support.disks.logs import Disk, append, read_all, values_of

TP = TopicPartition("topic", 0)
TOPIC_ID = b"\x05" * 16
OVERRIDES = {"topic": {"segment.bytes": "300", "index.interval.bytes": "100", "file.delete.delay.ms": "10"}}


class Run:
    """One run of a scenario: the acknowledged records, and access to the directory."""

    def __init__(self, path: Path, fs: FaultyFileSystem) -> None:
        path.mkdir(exist_ok=True)
        self.fs = fs
        self.disk = Disk(path, fs=fs)
        self.manager = LogManager([str(path)], {}, self.disk.environment)
        self.acknowledged: list[bytes] = []
        """Values by their offsets; empty for a control record."""
        self.start = 0
        """Records below may be gone."""

    def open(self) -> UnifiedLog:
        self.manager.startup(OVERRIDES)
        return self.manager.get_or_create_log(TP, TOPIC_ID, is_new=True)

    def append(self, log: UnifiedLog, value: bytes, **producer: int | bool) -> None:
        append(log, value, **producer)
        self.acknowledged.append(value)

    def release(self) -> None:
        """Release the locks and descriptors, as the kernel does for a dead process."""
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()


Scenario = Callable[[Run], None]


def operations_of(scenario: Scenario, path: Path, kinds: frozenset[str] = CHANGES) -> int:
    """The number of operations of these kinds in the scenario when nothing fails."""
    fs = FaultyFileSystem(kinds=kinds)
    scenario(Run(path, fs))
    shutil.rmtree(path)
    return fs.count


def runs_failing_at_each(
    scenario: Scenario,
    path: Path,
    failure: Callable[[], BaseException],
    *,
    for_good: bool = True,
    kinds: frozenset[str] = CHANGES,
) -> Iterator[Run]:
    """A new run for every operation of these kinds in the scenario."""
    count = operations_of(scenario, path / "counting", kinds)
    assert count > 3, "there is something to fail"
    for point in range(1, count + 1):
        directory = path / f"run-{point}"
        yield Run(directory, FaultyFileSystem(point, failure, for_good=for_good, kinds=kinds))
        shutil.rmtree(directory, ignore_errors=True)


def die_at_each_change(scenario: Scenario, path: Path) -> None:
    """Wherever the process dies, no acknowledged record is lost and no deleted one returns."""
    for run in runs_failing_at_each(scenario, path, crash):
        try:
            scenario(run)
        except CrashError:
            pass
        else:
            raise AssertionError("the scenario is not the same each time: it did not come to its end")
        run.release()
        check_after_restart(run)


def answer_of(scenario: Scenario, run: Run) -> ErrorCode | None:
    """The error code of the scenario; a refused start counts as a storage error."""
    try:
        scenario(run)
    except KafkaError as error:
        return error.code
    except LogDirError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return None


def fail_at_each(
    scenario: Scenario,
    path: Path,
    failure: Callable[[], BaseException],
    *,
    for_good: bool,
    kinds: frozenset[str] = CHANGES,
) -> None:
    """A failure returns a storage error or nothing; the next start is as after a kill."""
    for run in runs_failing_at_each(scenario, path, failure, for_good=for_good, kinds=kinds):
        answer = answer_of(scenario, run)
        run.release()
        assert answer in (None, ErrorCode.KAFKA_STORAGE_ERROR), run.fs.failed
        check_after_restart(run)


def check_after_restart(run: Run) -> None:
    """A start on a working disk: no gap, no duplicate, no acknowledged record lost, and appends work."""
    again = Run(run.disk.path, FaultyFileSystem())
    again.manager.startup(OVERRIDES)
    log = again.manager.get_or_create_log(TP, is_new=True)
    records = read_all(log)
    offsets = [record.offset for record in records]
    assert offsets == list(range(log.log_start_offset, log.log_end_offset)), "no gap and nothing twice"
    found = {record.offset: record.value for record in records}
    for offset, value in enumerate(run.acknowledged):
        if offset < run.start and offset not in found:
            continue
        if value:
            assert found.get(offset) == value, f"record {offset} was acknowledged and is lost after {run.fs.failed!r}"
        else:
            assert offset in found
    assert log.log_start_offset <= run.start
    append(log, b"life goes on")
    assert values_of(read_all(log))[-1] == b"life goes on"
    again.manager.shutdown()
