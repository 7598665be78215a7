"""The process dies, or the disk fails, at every single change of a file; afterwards the log opens and has lost nothing.

A scenario is run once to count its changes and then once for each of them, dying there (the write that is hit stores
half of its bytes). What was acknowledged before must be there after the next start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log_dir import LogDirError
from odradek.storage.log_manager import LogManager
from odradek.storage.unified_log import UnifiedLog
from tests.support.faulty_disk import CrashError, FaultyFileSystem, crash, disk_full, io_error
from tests.support.logs import Disk, append, marker, read_all, values_of

TP = TopicPartition("topic", 0)
OVERRIDES = {"topic": {"segment.bytes": "300", "index.interval.bytes": "100", "file.delete.delay.ms": "10"}}


class Run:
    """One run of a scenario: what has been acknowledged, and how the directory is reached."""

    def __init__(self, path: Path, fs: FaultyFileSystem) -> None:
        self.disk = Disk(path, fs=fs)
        self.manager = LogManager([str(path)], {}, self.disk.environment)
        self.acknowledged: list[bytes] = []
        self.start = 0
        self.end_may_be = 10**9

    def open(self) -> UnifiedLog:
        self.manager.startup(OVERRIDES)
        return self.manager.get_or_create_log(TP, b"\x05" * 16, is_new=True)

    def append(self, log: UnifiedLog, value: bytes, **producer: int | bool) -> None:
        append(log, value, **producer)
        self.acknowledged.append(value)

    def release(self) -> None:
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()


def appends_and_rolls(run: Run) -> None:
    log = run.open()
    for number in range(12):
        run.append(log, b"value %d" % number)
    run.manager.shutdown()


def retention(run: Run) -> None:
    log = run.open()
    for number in range(12):
        run.append(log, b"value %d" % number)
    log.update_high_watermark(12)
    run.start = 7  # from here on records below may be gone
    log.maybe_increment_log_start_offset(7, "test")
    log.delete_old_segments()
    run.manager.checkpoint_log_start_offsets()
    run.disk.advance(20)
    run.manager.shutdown()


def truncation(run: Run) -> None:
    log = run.open()
    for number in range(12):
        run.append(log, b"value %d" % number)
    kept = run.acknowledged[:5]
    run.acknowledged = kept  # those above may be gone or not, until it is done
    run.manager.truncate_to({TP: 5})
    run.append(log, b"after the cut")
    run.disk.advance(20)
    run.manager.shutdown()


def transactions(run: Run) -> None:
    log = run.open()
    for number in range(4):
        run.append(
            log, b"txn %d" % number, producer_id=3, producer_epoch=number, base_sequence=0, is_transactional=True
        )
        kind = ControlRecordType.ABORT if number % 2 else ControlRecordType.COMMIT
        log.append_as_leader(marker(kind, producer_id=3, producer_epoch=number), 0, origin=AppendOrigin.COORDINATOR)
        run.acknowledged.append(b"")
        log.update_high_watermark(log.log_end_offset)
    run.manager.shutdown()


def restart(run: Run) -> None:
    """Dying during the start and during the recovery it makes."""
    seed = Run(run.disk.path, FaultyFileSystem())
    log = seed.open()
    for number in range(8):
        seed.append(log, b"value %d" % number)
    log.discard()
    seed.release()
    run.acknowledged = seed.acknowledged
    run.open()
    run.manager.shutdown()


def recovery_of_a_damaged_segment(run: Run) -> None:
    """What lies behind a bad batch goes, and goes before the bad batch is cut off."""
    seed = Run(run.disk.path, FaultyFileSystem())
    log = seed.open()
    for number in range(12):
        seed.append(log, b"value %d" % number)
    log.discard()
    seed.release()
    damaged = run.disk.path / "topic-0" / "00000000000000000003.log"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    (run.disk.path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    run.acknowledged = seed.acknowledged[:5]
    log = run.open()
    assert log.log_end_offset == 5
    run.disk.advance(20)
    run.manager.shutdown()


def deletion(run: Run) -> None:
    """A deleted log does not come back under its successor's name."""
    log = run.open()
    run.append(log, b"old")
    run.acknowledged.clear()
    run.manager.async_delete(TP)
    log = run.manager.get_or_create_log(TP, b"\x06" * 16, is_new=True)
    assert log.log_end_offset == 0
    run.append(log, b"new")
    run.disk.advance(20)
    run.manager.shutdown()


SCENARIOS = [
    appends_and_rolls,
    retention,
    truncation,
    transactions,
    restart,
    recovery_of_a_damaged_segment,
    deletion,
]


def changes_of(scenario: Callable[[Run], None], path: Path) -> int:
    fs = FaultyFileSystem()
    scenario(Run(path, fs))
    shutil.rmtree(path)
    return fs.count


def check_after_restart(run: Run, path: Path) -> None:
    again = Run(path, FaultyFileSystem())
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
            assert found.get(offset) == value, f"record {offset} was acknowledged and is lost"
        else:
            assert offset in found
    assert log.log_start_offset <= run.start
    append(log, b"life goes on")
    assert values_of(read_all(log))[-1] == b"life goes on"
    again.manager.shutdown()


def answer_of(scenario: Callable[[Run], None], run: Run) -> ErrorCode | None:
    """The error code the scenario ends with; a broker that refuses to start counts as a storage error."""
    try:
        scenario(run)
    except KafkaError as error:
        return error.code
    except LogDirError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return None


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_death_at_every_change(tmp_path: Path, scenario: Callable[[Run], None]) -> None:
    count = changes_of(scenario, tmp_path / "counting")
    assert count > 10
    for point in range(1, count + 1):
        path = tmp_path / f"run-{point}"
        run = Run(path, FaultyFileSystem(point, crash))
        with pytest.raises(CrashError):
            scenario(run)
        run.release()
        check_after_restart(run, path)
        shutil.rmtree(path)


@pytest.mark.parametrize("failure", [io_error, disk_full], ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("for_good", [True, False], ids=["from then on", "once"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_disk_failure_at_every_change(
    tmp_path: Path, scenario: Callable[[Run], None], failure: Callable[[], BaseException], for_good: bool
) -> None:
    """It is answered with a storage error and takes the directory offline; the next start is as after a kill."""
    count = changes_of(scenario, tmp_path / "counting")
    for point in range(1, count + 1):
        path = tmp_path / f"run-{point}"
        run = Run(path, FaultyFileSystem(point, failure, for_good=for_good))
        answer = answer_of(scenario, run)
        run.release()
        assert answer in (None, ErrorCode.KAFKA_STORAGE_ERROR)
        check_after_restart(run, path)
        shutil.rmtree(path)
