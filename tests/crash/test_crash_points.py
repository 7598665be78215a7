"""The process dies, or the disk fails, at every change of a file; afterwards the log opens and has lost nothing.

A scenario runs once to count its changes and then once for each of them, and dies there (the interrupted write stores
half of its bytes). The records acknowledged before must be there after the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log.unified_log import UnifiedLog
from tests.crash.crash_runs import (
    TOPIC_ID,
    TP,
    Run,
    Scenario,
    check_after_restart,
    die_at_each_change,
    fail_at_each,
    runs_failing_at_each,
)
from tests.support.disks.faulty_disk import (
    CHANGES,
    NEEDS_ROOM,
    OPENS,
    SYNCS,
    FaultyFileSystem,
    disk_full,
    io_error,
    too_many_files,
)
from tests.support.disks.logs import marker, read_all, values_of


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
    run.start = 7  # from now on, records below may be deleted
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
    run.acknowledged = kept  # until the end, those above may be deleted or not
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
    """The process dies during the start and its recovery."""
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
    """The segments after a bad batch are removed, before the bad batch is truncated."""
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
    """A deleted log does not return under the name of a new one."""
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


def names(scenario: Scenario) -> str:
    return scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=names)
def test_death_at_every_change(memory_path: Path, scenario: Scenario) -> None:
    die_at_each_change(scenario, memory_path)


@pytest.mark.parametrize("for_good", [True, False], ids=["from then on", "once"])
@pytest.mark.parametrize(
    ("failure", "kinds"),
    [(io_error, CHANGES), (disk_full, CHANGES), (too_many_files, OPENS), (io_error, SYNCS)],
    ids=["EIO", "ENOSPC", "EMFILE", "fsync"],
)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=names)
def test_disk_failure_at_every_operation(
    memory_path: Path,
    scenario: Scenario,
    failure: Callable[[], BaseException],
    kinds: frozenset[str],
    for_good: bool,
) -> None:
    fail_at_each(scenario, memory_path, failure, for_good=for_good, kinds=kinds)


def append_stubbornly(run: Run, log: UnifiedLog, value: bytes, **producer: int | bool) -> None:
    """As a client does: retry, unless the directory is offline."""
    try:
        run.append(log, value, **producer)
    except KafkaError:
        assert log.log_dir.is_online, f"offline after {run.fs.failed!r}"
        assert values_of(read_all(log)) == run.acknowledged, "what is there can be read, and nothing else is there"
        run.fs.mend()
        log.log_dir.check_space()
        run.append(log, value, **producer)


def open_stubbornly(run: Run) -> UnifiedLog:
    try:
        return run.open()
    except KafkaError:
        run.fs.mend()
        return run.manager.get_or_create_log(TP, TOPIC_ID, is_new=True)


def stubborn_appends(run: Run) -> None:
    log = open_stubbornly(run)
    for number in range(12):
        append_stubbornly(run, log, b"value %d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
    assert log.log_dir.is_online
    assert values_of(read_all(log)) == run.acknowledged
    run.manager.shutdown()


def stubborn_aborts(run: Run) -> None:
    """Aborted transactions write to a third file, after the records."""
    log = open_stubbornly(run)
    for number in range(4):
        producer = {"producer_id": number, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        append_stubbornly(run, log, b"txn", **producer)
        data = marker(ControlRecordType.ABORT, producer_id=number)
        try:
            log.append_as_leader(data, 0, origin=AppendOrigin.COORDINATOR)
        except KafkaError:
            assert log.log_dir.is_online
            assert log.state.checks.has_ongoing_transaction(number), "it did not happen"
            run.fs.mend()
            log.log_dir.check_space()
            log.append_as_leader(data, 0, origin=AppendOrigin.COORDINATOR)
        run.acknowledged.append(read_all(log)[-1].value or b"")
        log.update_high_watermark(log.log_end_offset)
    aborted = [txn for segment in log.segments for txn in segment.txn_index]
    assert [txn.last_offset for txn in aborted] == [1, 3, 5, 7]
    run.manager.shutdown()


@pytest.mark.parametrize("for_good", [True, False], ids=["from then on", "once"])
@pytest.mark.parametrize("scenario", [stubborn_appends, stubborn_aborts], ids=names)
def test_full_disk_refuses_an_append_and_takes_it_when_there_is_room(
    memory_path: Path, scenario: Scenario, for_good: bool
) -> None:
    for run in runs_failing_at_each(scenario, memory_path, disk_full, for_good=for_good, kinds=NEEDS_ROOM):
        scenario(run)
        check_after_restart(run)
