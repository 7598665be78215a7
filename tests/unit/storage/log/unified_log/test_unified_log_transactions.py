"""Producers and transactions in a log: reads of committed data, and the guards of appends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.disks.logs import Disk, append, batch, marker

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
COORDINATOR = AppendOrigin.COORDINATOR
UNCOMMITTED, COMMITTED = FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def append_txn(log: object, producer_id: int, sequence: int, *values: bytes) -> int:
    return append(
        log,  # type: ignore[arg-type]
        *values,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def test_open_transaction_holds_the_last_stable_offset(disk: Disk) -> None:
    log = disk.log()
    append(log, b"plain")
    append_txn(log, 1, 0, b"t1")
    append(log, b"plain")
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1
    assert log.read(0, 1000, COMMITTED, True).size_in_bytes == len(batch(b"plain"))
    log.append_as_leader(marker(COMMIT, producer_id=1), 0, origin=COORDINATOR)
    assert log.last_stable_offset == 1, "the marker is not below the high watermark yet"
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4


def test_aborted_transactions_are_listed_for_readers_of_committed_data(disk: Disk) -> None:
    log = disk.log()
    append_txn(log, 1, 0, b"a")
    append_txn(log, 2, 0, b"b")
    append_txn(log, 1, 1, b"c")
    log.append_as_leader(marker(ABORT, producer_id=1), 0, origin=COORDINATOR)
    log.append_as_leader(marker(COMMIT, producer_id=2), 0, origin=COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    assert log.read(0, 10_000, COMMITTED, True).aborted_transactions == [AbortedTxn(1, 0, 3, 1)]
    assert log.read(0, 10_000, UNCOMMITTED, True).aborted_transactions is None
    assert log.read(4, 10_000, COMMITTED, True).aborted_transactions == []
    assert os.path.exists(os.path.join(log.dir, "00000000000000000000.txnindex"))


def test_a_gap_at_the_end_of_the_log_is_read_without_a_list_of_aborted_transactions(disk: Disk) -> None:
    """The log ends at 3, its last batch at 0: a truncation removes a batch as a whole."""
    log = disk.log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    log.truncate_to(3)
    log.update_high_watermark(3)
    assert log.read(2, 10_000, COMMITTED, True).aborted_transactions is None
    assert log.read(3, 10_000, COMMITTED, True).aborted_transactions == []


def test_aborted_transactions_are_found_across_segments(disk: Disk) -> None:
    log = disk.log()
    append_txn(log, 1, 0, b"a")
    log.roll()
    log.append_as_leader(marker(ABORT, producer_id=1), 0, origin=COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    assert log.read(0, 10_000, COMMITTED, True).aborted_transactions == [AbortedTxn(1, 0, 1, 2)]


def test_transactional_append_without_verification_is_refused(tmp_path: Path) -> None:
    log = Disk(tmp_path, verification=True).log()
    data = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    guard = log.maybe_start_transaction_verification(1, 0, 0)
    for wrong in (None, object()):
        with pytest.raises(KafkaError) as error:
            log.append_as_leader(data, 0, verification_guard=wrong)
        assert error.value.code is ErrorCode.INVALID_TXN_STATE
    log.append_as_leader(data, 0, verification_guard=guard)
    assert log.maybe_start_transaction_verification(1, 1, 0) is None, "the transaction is open now"
    more = batch(b"b", producer_id=1, producer_epoch=0, base_sequence=1, is_transactional=True)
    assert log.append_as_leader(more, 0).first_offset == 1


def test_marker_voids_a_verification_under_way(tmp_path: Path) -> None:
    log = Disk(tmp_path, verification=True).log()
    guard = log.maybe_start_transaction_verification(1, 0, 0)
    log.append_as_leader(marker(ABORT, producer_id=1), 0, origin=COORDINATOR)
    data = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    with pytest.raises(KafkaError) as error:
        log.append_as_leader(data, 0, verification_guard=guard)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE


def test_duplicate_is_answered_with_its_first_offsets(disk: Disk) -> None:
    log = disk.log()
    append(log, b"other")
    for sequence in range(6):
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=sequence)
    end = log.log_end_offset
    info = log.append_as_leader(batch(b"x", producer_id=9, producer_epoch=0, base_sequence=1), 0)
    assert (info.first_offset, info.last_offset, info.duplicate) == (2, 2, True)
    assert log.log_end_offset == end
    with pytest.raises(KafkaError) as error:
        append(log, b"x", producer_id=9, producer_epoch=0, base_sequence=0)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "only five batches are remembered"


def test_refused_append_leaves_no_trace(disk: Disk) -> None:
    log = disk.log()
    append(log, b"x", producer_id=9, producer_epoch=1, base_sequence=0)
    before = (log.size, log.log_end_offset, log.active_producers()[9].last_seq)
    for bad in (
        batch(b"x", producer_id=9, producer_epoch=0, base_sequence=1),
        batch(b"x", producer_id=9, producer_epoch=1, base_sequence=5),
        batch(b"x", producer_id=9, producer_epoch=2, base_sequence=5),
    ):
        with pytest.raises(KafkaError):
            log.append_as_leader(bad, 0)
    assert (log.size, log.log_end_offset, log.active_producers()[9].last_seq) == before


def test_aborts_a_follower_is_sent_in_one_append(disk: Disk) -> None:
    """Four producers whose batches alternate; each entry has the last stable offset at its abort."""
    sequences = dict.fromkeys(range(1, 5), 0)

    def txn(producer_id: int, offset: int, count: int) -> memoryview:
        sequence = sequences[producer_id]
        sequences[producer_id] += count
        return batch(
            *[b"t"] * count,
            base_offset=offset,
            epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )

    def plain(offset: int, count: int) -> memoryview:
        return batch(*[b"p"] * count, base_offset=offset, epoch=0)

    def end(producer_id: int, offset: int, kind: ControlRecordType) -> memoryview:
        return marker(kind, producer_id=producer_id, base_offset=offset, epoch=0)

    sent = [
        *(txn(1, 0, 5), plain(5, 3), txn(2, 8, 2), txn(1, 10, 4), txn(3, 14, 3), plain(17, 2), txn(1, 19, 10)),
        *(end(1, 29, ABORT), txn(2, 30, 6), txn(4, 36, 3), plain(39, 10), txn(3, 49, 9), end(3, 58, COMMIT)),
        *(txn(4, 59, 8), txn(2, 67, 7), end(2, 74, ABORT), plain(75, 10), txn(4, 85, 4), end(4, 89, COMMIT)),
    ]
    log = disk.log()
    log.append_as_follower(memoryview(bytearray(b"".join(sent))))
    aborted = [AbortedTxn(1, 0, 29, 8), AbortedTxn(2, 8, 74, 36)]
    assert list(log.segments.active.txn_index) == aborted
    for high_watermark, unstable in ((30, 8), (75, 36), (90, None)):
        log.update_high_watermark(high_watermark)
        assert log.first_unstable_offset == unstable
    assert log.read(30, 1, COMMITTED, True).aborted_transactions == [aborted[1]]


@pytest.mark.parametrize(("log_start", "segments"), [(5, 2), (8, 1)])
def test_first_unstable_offset_moves_with_the_log_start(disk: Disk, log_start: int, segments: int) -> None:
    """The transaction is still open, in the middle of a segment, or its first segment is deleted."""
    log = disk.log()
    append_txn(log, 1, 0, *[b"t"] * 5)
    append(log, *[b"p"] * 3)
    log.roll()
    append_txn(log, 1, 5, *[b"t"] * 5)
    assert log.first_unstable_offset == 0
    log.update_high_watermark(log.log_end_offset)
    log.maybe_increment_log_start_offset(log_start, "test")
    log.delete_old_segments()
    assert len(log.segments) == segments
    assert (log.first_unstable_offset, log.last_stable_offset) == (log_start, log_start)
    log.append_as_leader(marker(ABORT, producer_id=1), 0, origin=COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset
    found = log.read(log_start, 10_000, COMMITTED, True)
    assert found.aborted_transactions == [AbortedTxn(1, 0, 13, 14)], "with the offset where it began"


def test_markers_of_older_coordinators_and_producers_are_refused(disk: Disk) -> None:
    """Also without an open transaction, after a later marker."""
    log = disk.log()
    append_txn(log, 1, 0, b"t")
    for kind in (COMMIT, ABORT, ABORT):
        log.append_as_leader(marker(kind, producer_id=1, coordinator_epoch=2), 0, origin=COORDINATOR)
    end = log.log_end_offset
    assert list(log.segments.active.txn_index) == [], "nothing was open any more"
    newer = marker(ABORT, producer_id=1, producer_epoch=5, coordinator_epoch=2)
    for bad, code in (
        (marker(ABORT, producer_id=1, coordinator_epoch=1), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (marker(ABORT, producer_id=1, producer_epoch=4, coordinator_epoch=2), ErrorCode.INVALID_PRODUCER_EPOCH),
    ):
        with pytest.raises(KafkaError) as error:
            log.append_as_leader(bad, 0, origin=COORDINATOR)
        assert error.value.code is code
        assert log.log_end_offset == end
        log.append_as_leader(newer, 0, origin=COORDINATOR)
        end += 1


def test_verification_is_switched_on_while_an_append_is_on_its_way(disk: Disk) -> None:
    log = disk.log()
    disk.environment.producers.transaction_verification = True
    with pytest.raises(KafkaError) as error:
        append_txn(log, 23, 4, b"1", b"2")
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    assert not log.has_ongoing_transaction(23)
    guard = log.maybe_start_transaction_verification(23, 4, 0)
    data = batch(b"1", producer_id=23, producer_epoch=0, base_sequence=4, is_transactional=True)
    log.append_as_leader(data, 0, verification_guard=guard)
    assert log.has_ongoing_transaction(23), "an unknown producer may begin anywhere"


def test_cutting_the_log_voids_a_verification_of_what_is_replayed(tmp_path: Path) -> None:
    log = Disk(tmp_path, verification=True).log()
    data = batch(b"a", epoch=0, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_follower(data)
    log.append_as_follower(marker(ABORT, producer_id=1, base_offset=1, epoch=0))
    log.append_as_follower(batch(b"plain", base_offset=2, epoch=0))
    guard = log.maybe_start_transaction_verification(1, 1, 0)
    log.truncate_to(2)
    again = batch(b"b", producer_id=1, producer_epoch=0, base_sequence=1, is_transactional=True)
    with pytest.raises(KafkaError) as error:
        log.append_as_leader(again, 1, verification_guard=guard)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
