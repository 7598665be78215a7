"""Producers and transactions in a log: what readers of committed data see, and what an append must show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.fetch_data import FetchIsolation
from odradek.storage.transaction_index import AbortedTxn
from tests.support.logs import Disk, append, batch, marker

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
