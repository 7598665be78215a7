"""The recovery point advances only after an fsync of the records below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.segment.flusher import RETRY_MS
from tests.support.disks.faulty_disk import OPENS, SYNCS, FaultyFileSystem, too_many_files
from tests.support.disks.logs import DeferredIoPool, Disk, append


class SyncCounter(OsFileSystem):
    """Counts fsyncs, and fails them on demand."""

    def __init__(self) -> None:
        self.syncs = 0
        self.dirs = 0
        self.broken = False

    def sync_dir(self, path: str) -> None:
        self.dirs += 1
        super().sync_dir(path)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if self.broken:
            raise OSError(5, "Input/output error")
        super().sync(fd)


def setup(path: Path) -> tuple[Disk, DeferredIoPool, SyncCounter]:
    pool, fs = DeferredIoPool(), SyncCounter()
    return Disk(path, fs=fs, io_pool=pool), pool, fs


def test_flush_does_not_wait(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    fs.syncs = 0
    append(log, b"a")
    log.flush()
    assert (log.recovery_point, fs.syncs) == (0, 0)
    pool.run_all()
    assert log.recovery_point == 1
    assert fs.syncs >= 1
    log.close()


def test_flushes_asked_for_meanwhile_are_served_together(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log({"flush.messages": "1"})
    append(log, b"first")
    pool.run_all()
    done: list[int] = []
    for offset in range(1, 11):
        append(log, b"a")
        log.when_flushed(offset + 1, lambda error, offset=offset: done.append(offset))  # type: ignore[misc]
    pool.run_one()
    assert done == [1]
    pool.run_one()
    assert done == list(range(1, 11))
    assert (log.recovery_point, len(pool.pending)) == (11, 0)
    log.close()


def test_directory_is_synced_when_files_came_or_went(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    counts = []
    for step in (None, None, log.roll, None):
        append(log, b"a")
        pool.run_all()
        if step is not None:
            step()
            append(log, b"a")
        fs.dirs = 0
        log.flush()
        pool.run_all()
        counts.append(fs.dirs)
    assert counts == [2, 0, 1, 0], "the first time with the directory above, which names the log's"
    log.close()


def test_records_appended_after_the_fsync_began_are_not_counted(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    log.flush()
    append(log, b"b")
    pool.run_all()
    assert log.recovery_point == 1
    log.close()


def test_truncation_voids_the_flush_under_way(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    append(log, b"b")
    answers: list[OSError | None] = []
    log.when_flushed(2, answers.append)
    log.truncate_to(1)
    append(log, b"other")
    assert answers == [None], "whoever waited is let go; the record is gone"
    pool.run_all()
    assert log.recovery_point <= 1, "the new record at offset 1 was not part of that fsync"
    log.close()


def test_failed_fsync_takes_the_directory_offline_and_is_not_retried(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    fs.broken = True
    answers: list[OSError | None] = []
    log.when_flushed(1, answers.append)
    pool.run_all()
    assert len(answers) == 1
    assert isinstance(answers[0], OSError)
    assert not disk.log_dir.is_online
    assert log.recovery_point == 0
    syncs = fs.syncs
    pool.run_all()
    assert fs.syncs == syncs
    log.discard()


def test_close_waits_for_the_disk(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    append(log, b"a")
    pool.pending.clear()
    fs.syncs = 0
    log.close()
    assert log.recovery_point == 1
    assert fs.syncs >= 2, "the log and its time index, which got its last entry"


def test_close_syncs_indexes_that_were_cut_though_all_records_are_flushed(tmp_path: Path) -> None:
    """Zeros after the entries would count as entries, if the truncation were lost but not the clean-shutdown marker."""
    disk, pool, fs = setup(tmp_path)
    log = disk.log({"index.interval.bytes": "0"})
    append(log, b"a")
    append(log, b"b")
    log.flush()
    pool.run_all()
    fs.syncs = 0
    log.close()
    assert fs.syncs >= 2


def test_close_of_an_untouched_log_syncs_nothing(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log()
    append(log, b"a")
    log.close()
    pool.run_all()
    disk, pool, fs = setup(tmp_path)
    log = disk.log(clean=True)
    log.close()
    pool.run_all()
    assert fs.syncs == 0


def test_nothing_is_flushed_after_a_failure(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    fs.broken = True
    log.flush()
    pool.run_all()
    fs.broken = False
    answers: list[OSError | None] = []
    log.when_flushed(1, answers.append)
    log.flush()
    assert len(answers) == 1
    assert isinstance(answers[0], OSError)
    assert not pool.pending
    with pytest.raises(OSError, match="Input/output"):
        log.flusher.flush_now(1)
    assert log.recovery_point == 0
    log.discard()


def test_log_that_is_let_go_answers_who_waits(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    answers: list[OSError | None] = []
    log.when_flushed(1, answers.append)
    append(log, b"b")
    log.when_flushed(2, answers.append)
    log.discard()
    assert len(answers) == 2
    assert all(isinstance(answer, OSError) for answer in answers)
    pool.run_all()
    assert len(answers) == 2


def test_many_waiting_produces_cost_one_fsync_of_the_log(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log({"flush.messages": "1"})
    append(log, b"first")
    pool.run_all()
    fs.syncs = 0
    for _ in range(200):
        append(log, b"a", epoch=0)
        log.when_flushed(log.log_end_offset, lambda error: None)
    pool.run_all()
    assert log.recovery_point == 201
    assert fs.syncs <= 4, "the first one's, and one for the 199 that came while it was under way; log and indexes"
    log.close()


def test_who_waits_for_a_log_that_is_replaced_waits_for_its_successor(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log, other = disk.log(), disk.log(tp=TopicPartition("other", 0))
    for each in (log, other):
        append(each, b"a")
    pool.run_all()
    answers: list[OSError | None] = []
    log.when_flushed(1, answers.append)
    log.flusher.hand_over(other.flusher)
    pool.run_one()
    assert answers == [], "the old log is flushed, and that is not what counts"
    fs.broken = True
    pool.run_all()
    assert [str(error) for error in answers] == ["[Errno 5] Input/output error"]


def test_finished_segment_is_synced_even_if_its_records_are_on_the_disk(tmp_path: Path) -> None:
    """Its indexes are finished after the flush of its records."""
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    append(log, b"a")
    log.flush()
    pool.run_all()
    assert log.recovery_point == 1
    fs.syncs = fs.dirs = 0
    log.roll()
    pool.run_all()
    assert fs.syncs >= 2, "the time index has got its last entry"
    assert fs.dirs == 1
    fs.syncs = 0
    log.flush()
    pool.run_all()
    assert fs.syncs == 0
    log.close()


def test_deleted_segment_is_not_synced_any_more(tmp_path: Path) -> None:
    disk, pool, _ = setup(tmp_path)
    log = disk.log({"file.delete.delay.ms": "0"})
    append(log, b"a")
    log.flush()
    pool.run_all()
    append(log, b"b")
    log.flush()
    log.roll()
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(2, "test")
    log.delete_old_segments()
    disk.advance(1)
    pool.run_all()
    assert disk.log_dir.is_online
    assert log.recovery_point == 2
    log.close()


def test_close_does_not_rely_on_a_flush_that_has_not_begun(tmp_path: Path) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log({"index.interval.bytes": "0"})
    pool.run_all()
    append(log, b"a")
    append(log, b"b")
    log.flush()
    fs.syncs = 0
    log.close()
    assert fs.syncs >= 3, "the log and both indexes, which the worker was to sync"
    pool.run_all()


@pytest.mark.parametrize("kinds", [OPENS, SYNCS], ids=["the files", "the directory"])
def test_a_flush_that_cannot_open_its_files_is_tried_again(tmp_path: Path, kinds: frozenset[str]) -> None:
    pool, fs = DeferredIoPool(), FaultyFileSystem(kinds=kinds)
    disk = Disk(tmp_path, fs=fs, io_pool=pool)  # type: ignore[arg-type]
    log = disk.log()
    pool.run_all()
    append(log, b"a")
    fs.fail_at, fs.failure = fs.count + 1, too_many_files
    answers: list[OSError | None] = []
    log.when_flushed(1, answers.append)
    pool.run_all()
    assert (answers, log.recovery_point) == ([], 0)
    fs.mend()
    disk.advance(RETRY_MS)
    pool.run_all()
    assert (answers, log.recovery_point) == ([None], 1)
    assert log.log_dir.is_online
    log.close()


def test_a_flush_that_is_tried_again_syncs_the_directory_above_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, pool, fs = setup(tmp_path)
    log = disk.log()
    pool.run_all()
    append(log, b"a")

    def fail(path: str) -> None:
        raise too_many_files()

    with monkeypatch.context() as patched:
        patched.setattr(fs, "sync_dir", fail)
        log.flush()
        pool.run_all()
    fs.dirs = 0
    disk.advance(RETRY_MS)
    pool.run_all()
    assert fs.dirs == 2
    assert log.recovery_point == 1
    log.close()
