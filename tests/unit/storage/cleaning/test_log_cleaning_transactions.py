"""Compaction and transactions: the cases of LogCleanerTest, under its names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.cleaning.log_cleaning import LogCleaning
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.compaction.compaction import BareLog
from tests.support.disks.logs import NOW

RETENTION_MS = 50_000


@pytest.fixture
def log(tmp_path: Path) -> BareLog:
    return BareLog(tmp_path, {"delete.retention.ms": str(RETENTION_MS)})


def transact(log: BareLog, producer_id: int, *keys: int) -> None:
    log.write(*((b"%d" % key, b"v%d" % log.next_offset) for key in keys), producer_id=producer_id, transactional=True)


def plain(log: BareLog, *keys: int) -> None:
    for key in keys:
        log.write((b"%d" % key, b"v"))


def commit(log: BareLog, producer_id: int) -> None:
    log.end_transaction(producer_id, commit=True)


def abort(log: BareLog, producer_id: int) -> None:
    log.end_transaction(producer_id, commit=False)


def clean_twice(log: BareLog, now_ms: int = NOW) -> None:
    """The first compaction sets the delete horizons of markers, the second one runs after them."""
    for at_ms in (now_ms, now_ms + RETENTION_MS):
        log.first_dirty_offset = 0
        log.clean(now_ms=at_ms)


def keys(log: BareLog) -> list[int]:
    return [int(record.key or b"") for record in log.records()]


def offsets(log: BareLog) -> list[int]:
    return [record.offset for batch in log.batches() for record in batch.records()]


def last_offsets(log: BareLog) -> list[int]:
    return [batch.last_offset for batch in log.batches()]


def test_multi_pass_segment_cleaning_with_aborted_transactions(log: BareLog) -> None:
    transact(log, 1, 1, 2)  # [0, 1]
    transact(log, 2, 2, 3)  # [2, 3]
    transact(log, 1, 3, 4)  # [4, 5]
    commit(log, 1)  # 6
    commit(log, 2)  # 7
    transact(log, 1, 2, 3)  # [8, 9]
    abort(log, 1)  # 10
    transact(log, 2, 4, 5)  # [11, 12]
    transact(log, 1, 5, 6)  # [13, 14]
    commit(log, 1)  # 15
    abort(log, 2)  # 16
    transact(log, 2, 6, 7)  # [17, 18]
    commit(log, 2)  # 19
    log.roll()
    aborted = [AbortedTxn(1, 8, 10, 11), AbortedTxn(2, 11, 16, 17)]
    assert log.aborted() == aborted

    def clean(now_ms: int) -> None:
        log.clean(log.job(now_ms=now_ms, map_slots=4, load_factor=0.75))

    clean(NOW)
    assert log.first_dirty_offset == 4
    assert [b.base_offset for b in log.batches()] == [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]
    assert offsets(log) == [0, 2, 3, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]
    assert log.aborted() == aborted
    clean(NOW)
    assert log.first_dirty_offset == 14
    assert [b.base_offset for b in log.batches()] == [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]
    assert offsets(log) == [0, 2, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]
    assert log.aborted() == []
    clean(NOW + RETENTION_MS)
    assert log.first_dirty_offset == 20
    assert [b.base_offset for b in log.batches()] == [0, 2, 4, 6, 7, 13, 15, 17, 19]
    assert offsets(log) == [0, 2, 4, 5, 6, 7, 13, 15, 17, 18, 19]
    assert log.aborted() == []


def test_an_index_that_the_broker_cuts_meanwhile_is_read_as_it_is(log: BareLog) -> None:
    """A follower cuts the end of its active segment, and the compaction of the others goes on."""
    for producer_id in (1, 2):
        transact(log, producer_id, 1, 2)
        abort(log, producer_id)
    cleaning = LogCleaning(log.job(), log.disk.environment, log.slept_ms.append)
    first, second = AbortedTxn(1, 0, 2, 3), AbortedTxn(2, 3, 5, 6)
    assert cleaning._collect_aborted(0, 100) == [first, second]
    index = log.path / "00000000000000000000.txnindex"
    os.truncate(index, index.stat().st_size // 2)
    assert cleaning._collect_aborted(0, 100) == [first]
    index.unlink()
    assert cleaning._collect_aborted(0, 100) == []


def test_basic_transaction_aware_cleaning(log: BareLog) -> None:
    transact(log, 1, 1, 2)
    transact(log, 2, 2, 3)
    transact(log, 1, 3, 4)
    abort(log, 1)
    commit(log, 2)
    transact(log, 1, 2)
    commit(log, 1)
    aborted = log.aborted()
    log.roll()
    log.clean()
    assert keys(log) == [3, 2]
    assert offsets(log) == [3, 6, 7, 8, 9]
    assert log.aborted() == aborted != []


def test_clean_with_transactions_spanning_segments(log: BareLog) -> None:
    transact(log, 1, 1, 2)
    transact(log, 3, 2, 3)
    transact(log, 2, 3, 4)
    log.roll()
    transact(log, 2, 5, 6)
    transact(log, 3, 6, 7)
    transact(log, 1, 7, 8)
    abort(log, 2)
    transact(log, 3, 8, 9)
    commit(log, 3)
    transact(log, 1, 9, 10)
    abort(log, 1)
    # All are complete, but two markers lie in the active segment, whose transaction index is read too.
    log.clean()
    assert keys(log) == [2, 3, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]
    log.roll()
    transact(log, 2, 11)
    transact(log, 1, 12)
    log.clean(log.job(end=log.bases[-1]))
    assert keys(log) == [2, 3, 6, 7, 8, 9, 11, 12]


def test_commit_marker_removal(log: BareLog) -> None:
    transact(log, 1, 1)
    transact(log, 1, 2, 3)
    commit(log, 1)
    transact(log, 1, 2)
    commit(log, 1)
    log.roll()
    log.clean()
    assert (keys(log), offsets(log)) == ([1, 3, 2], [0, 2, 3, 4, 5])
    transact(log, 1, 1, 3)
    commit(log, 1)
    log.roll()
    log.clean()
    assert (keys(log), offsets(log)) == ([2, 1, 3], [3, 4, 5, 6, 7, 8])
    clean_twice(log, NOW)
    assert (keys(log), offsets(log)) == ([2, 1, 3], [4, 5, 6, 7, 8])


def test_marker_stays_until_its_delete_horizon(log: BareLog) -> None:
    commit(log, 1)
    plain(log, 5)
    log.last_records.clear()
    log.roll()
    log.clean()
    (marker, _) = log.batches()
    assert marker.delete_horizon_ms == NOW + RETENTION_MS
    for now_ms, expected in ((NOW + RETENTION_MS - 1, [0, 1]), (NOW + RETENTION_MS, [1])):
        log.first_dirty_offset = 0
        log.clean(now_ms=now_ms)
        assert offsets(log) == expected


def test_deleted_batches_with_no_messages_read(log: BareLog) -> None:
    transact(log, 1, 1)
    abort(log, 1)
    transact(log, 1, 2)
    transact(log, 1, 2)
    commit(log, 1)
    log.roll()
    log.clean()
    assert (keys(log), offsets(log)) == ([2], [1, 3, 4])
    clean_twice(log)
    assert (keys(log), offsets(log)) == ([2], [3, 4])


def test_commit_marker_retention_with_empty_batch(log: BareLog) -> None:
    transact(log, 1, 2, 3)
    log.roll()
    transact(log, 2, 2, 3)
    commit(log, 2)
    log.roll()
    plain(log, 2, 3)
    commit(log, 1)
    log.roll()
    for _ in range(2):  # the empty batches stay, because they have the last sequences
        log.first_dirty_offset = 0
        log.clean()
        assert (keys(log), offsets(log), last_offsets(log)) == ([2, 3], [4, 5, 6, 7], [1, 3, 4, 5, 6, 7])
    transact(log, 2, 1)
    commit(log, 2)
    log.roll()
    log.clean()
    assert (keys(log), offsets(log), last_offsets(log)) == ([2, 3, 1], [4, 5, 6, 7, 8, 9], [1, 4, 5, 6, 7, 8, 9])
    clean_twice(log)
    assert (keys(log), offsets(log), last_offsets(log)) == ([2, 3, 1], [5, 6, 7, 8, 9], [1, 5, 6, 7, 8, 9])


def test_clean_empty_control_batch(log: BareLog) -> None:
    commit(log, 1)
    plain(log, 2, 3)
    log.roll()
    clean_twice(log)
    assert (offsets(log), last_offsets(log)) == ([1, 2], [0, 1, 2])
    log.first_dirty_offset = 0
    log.clean(now_ms=2**60)
    assert (offsets(log), last_offsets(log)) == ([1, 2], [0, 1, 2])


def test_committed_transaction_spanning_segments(log: BareLog) -> None:
    transact(log, 1, 1)
    log.roll()
    commit(log, 1)
    log.roll()
    clean_twice(log)
    assert (offsets(log), last_offsets(log)) == ([0, 1], [0, 1])


def test_aborted_transaction_spanning_segments(log: BareLog) -> None:
    transact(log, 1, 1)
    log.roll()
    abort(log, 1)
    log.roll()
    clean_twice(log)
    assert (offsets(log), last_offsets(log)) == ([1], [0, 1])
    assert log.aborted() == [AbortedTxn(1, 0, 1, 2)]


def test_abort_marker_removal(log: BareLog) -> None:
    transact(log, 1, 1)
    transact(log, 1, 2, 3)
    abort(log, 1)
    transact(log, 1, 3)
    commit(log, 1)
    log.roll()
    log.clean()
    assert (keys(log), offsets(log)) == ([3], [3, 4, 5])
    clean_twice(log)
    assert (keys(log), offsets(log)) == ([3], [4, 5])


def test_empty_batch_removal_with_sequence_reuse(log: BareLog) -> None:
    transact(log, 1, 1)
    commit(log, 1)
    log._sequences.clear()
    transact(log, 1, 2)
    commit(log, 1)
    plain(log, 1, 2)
    log.roll()
    log.clean()
    assert (offsets(log), last_offsets(log)) == ([1, 3, 4, 5], [1, 2, 3, 4, 5])
    clean_twice(log)
    assert (offsets(log), last_offsets(log)) == ([3, 4, 5], [2, 3, 4, 5])


def test_abort_marker_retention_with_empty_batch(log: BareLog) -> None:
    transact(log, 1, 2, 3)
    abort(log, 1)
    log.roll()
    entry = [AbortedTxn(1, 0, 2, 3)]
    assert log.aborted() == entry
    log.clean()
    clean_twice(log)
    assert log.aborted() == entry
    assert (keys(log), offsets(log), last_offsets(log)) == ([], [2], [1, 2])
    transact(log, 1, 1)
    log.roll()
    log.clean(log.job(end=log.bases[-1]))
    assert log.aborted() == entry
    assert (keys(log), offsets(log), last_offsets(log)) == ([1], [2, 3], [2, 3])
    for now_ms in (NOW, NOW + RETENTION_MS):
        log.first_dirty_offset = 0
        log.clean(log.job(end=log.bases[-1], now_ms=now_ms))
    assert (keys(log), offsets(log), last_offsets(log)) == ([1], [3], [3])
    assert log.aborted() == []


def test_cleaner_retains_last_sequence_even_if_transaction_aborted(log: BareLog) -> None:
    transact(log, 1, 1)
    transact(log, 1, 2, 3)
    abort(log, 1)
    log.roll()
    log.clean()
    (empty, _) = log.batches()
    assert isinstance(empty, RecordBatch)
    assert (keys(log), last_offsets(log), empty.last_sequence) == ([], [2, 3], 2)
    transact(log, 1, 1, 5)
    log.roll()
    log.first_dirty_offset = 0
    log.clean(log.job(end=log.bases[-1]))
    assert (keys(log), offsets(log), last_offsets(log)) == ([1, 5], [3, 4, 5], [3, 5])


def test_cleaning_with_keys_conflicting_with_txn_marker_keys(log: BareLog) -> None:
    transact(log, 1, 1)
    commit(log, 1)
    log.write((ControlRecordType.COMMIT.key(), b"foo"), producer_id=2, transactional=True)
    commit(log, 2)
    log.roll()
    log.clean()
    assert offsets(log) == last_offsets(log) == [0, 1, 2, 3]
