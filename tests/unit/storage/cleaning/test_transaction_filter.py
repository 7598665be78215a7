"""Aborted batches and removable markers. Tests have the names of LogCleanerTest where it has the case."""

from __future__ import annotations

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.retained import empty_batch
from odradek.storage.cleaning.transaction_filter import TransactionFilter
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.disks.logs import batch, marker


def data(offset: int, producer_id: int = 1, *, transactional: bool = True) -> RecordBatch:
    return RecordBatch(
        batch(
            b"v",
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=transactional,
        )
    )


def end(offset: int, *, commit: bool, producer_id: int = 1) -> RecordBatch:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return RecordBatch(marker(kind, producer_id=producer_id, base_offset=offset))


def test_aborted_batches_go_and_others_stay() -> None:
    retained: list[AbortedTxn] = []
    transactions = TransactionFilter(retained.append)
    aborted = AbortedTxn(1, 2, 6, 7)
    transactions.add_aborted([aborted, aborted])
    assert not transactions.on_batch(data(0))
    assert not transactions.on_control_batch(end(1, commit=True))
    assert transactions.on_batch(data(2))
    assert not transactions.on_batch(data(3, 2))
    assert not transactions.on_batch(data(4, transactional=False))
    assert transactions.on_batch(data(5))
    assert not transactions.on_control_batch(end(6, commit=False))
    assert retained == [aborted]
    assert not transactions.on_batch(data(7))


def test_commit_marker_may_go_without_data() -> None:
    transactions = TransactionFilter()
    assert transactions.on_control_batch(end(0, commit=True))
    assert not transactions.on_batch(data(1))
    assert transactions.on_control_batch(end(2, commit=True, producer_id=2))
    assert not transactions.on_control_batch(end(3, commit=True))
    assert transactions.on_control_batch(end(4, commit=True))


def test_abort_marker_may_go_without_data_and_its_entry_with_it() -> None:
    retained: list[AbortedTxn] = []
    transactions = TransactionFilter(retained.append)
    transactions.add_aborted([AbortedTxn(1, 0, 5, 6)])
    assert transactions.on_control_batch(end(5, commit=False))
    assert transactions.on_control_batch(end(6, commit=False))
    assert retained == []


def test_state_is_carried_to_the_next_segment() -> None:
    transactions = TransactionFilter()
    first, second = AbortedTxn(1, 0, 20, 21), AbortedTxn(1, 21, 30, 31)
    transactions.add_aborted([first])
    assert transactions.on_batch(data(0))
    retained: list[AbortedTxn] = []
    transactions.retain = retained.append
    transactions.add_aborted([second, first])
    assert not transactions.on_control_batch(end(20, commit=False))
    assert transactions.on_control_batch(end(30, commit=False))
    assert retained == [first]


def test_emptied_marker_and_unknown_control_batch() -> None:
    transactions = TransactionFilter()
    assert transactions.on_control_batch(RecordBatch(memoryview(empty_batch(end(0, commit=True)))))
    leader_change = RecordBatch(marker(ControlRecordType.COMMIT, producer_id=1))
    changed = bytearray(leader_change.buffer)
    at = bytes(changed).index(b"\x00\x00\x00\x01", 61)
    changed[at : at + 4] = b"\x00\x00\x00\x02"
    assert not transactions.on_control_batch(RecordBatch(memoryview(changed)))
