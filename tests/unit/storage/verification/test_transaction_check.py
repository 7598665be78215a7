from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.segment.transaction_index import ENTRY
from odradek.storage.verification.findings import Finding
from odradek.storage.verification.transaction_check import TransactionIndexCheck, Transactions
from tests.support.disks.logs import NOW, batch, marker

ABORTED = (1, 10, 12, 13)
"""Producer 1, data at 10, marker at 12."""


def data(offset: int, producer_id: int = 1) -> RecordBatch:
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    return RecordBatch(memoryview(batch(b"x", base_offset=offset, **options)))


def end(offset: int, kind: ControlRecordType = ControlRecordType.ABORT, producer_id: int = 1) -> RecordBatch:
    return RecordBatch(marker(kind, producer_id=producer_id, base_offset=offset))


def found(
    tmp_path: Path, entries: list[tuple[int, ...]], *batches: RecordBatch, is_open: bool = False, tail: bytes = b""
) -> list[str]:
    path = tmp_path / "i"
    if entries or tail:
        path.write_bytes(b"".join(ENTRY.pack(*(entry if len(entry) == 5 else (0, *entry))) for entry in entries) + tail)
    findings: list[Finding] = []
    check = TransactionIndexCheck(str(path), 5, Transactions(), findings.append, is_open=is_open)
    for position, each in enumerate(batches):
        check.see(each, "log", position)
    check.finish(20)
    return [str(finding).replace(f"{tmp_path}/", "") for finding in findings]


def test_an_aborted_transaction_has_its_entry(tmp_path: Path) -> None:
    assert found(tmp_path, [ABORTED], data(10), end(12)) == []
    assert found(tmp_path, [(1, 3, 12, 13)], data(10), end(12)) == [], "it began before what is left of the log"


def test_a_committed_one_and_a_marker_without_data_have_none(tmp_path: Path) -> None:
    assert found(tmp_path, [], data(10), end(12, ControlRecordType.COMMIT), end(13)) == []


@pytest.mark.parametrize(("is_open", "count"), [(False, 1), (True, 0)])
def test_a_missing_entry(tmp_path: Path, is_open: bool, count: int) -> None:
    findings = found(tmp_path, [], data(10), end(12), is_open=is_open)
    assert len(findings) == count
    assert not count or findings[0] == (
        "i: no entry for the transaction of producer 1 from offset 10 on that was aborted at offset 12"
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ((1, 11, 12, 13), "i:0: first offset 11, but the transaction has data at 10"),
        ((2, 10, 12, 13), "i:0: offset 12 is no abort marker of producer 2"),
        (
            (1, 13, 12, 13),
            "i:0: AbortedTxn(producer_id=1, first_offset=13, last_offset=12, last_stable_offset=13) is no",
        ),
        ((-1, 10, 12, 13), "i:0: AbortedTxn(producer_id=-1"),
        ((1, 1, 4, 5), "i:0: marker offset 4 does not follow 4"),
        ((1, 10, 15, 16), "there is no marker at offset 15"),
        ((1, 1, 10, 12, 13), "i:0: unknown version 1"),
    ],
)
def test_an_entry_that_is_wrong(tmp_path: Path, entry: tuple[int, ...], said: str) -> None:
    assert any(said in line for line in found(tmp_path, [entry], data(10), end(12)))


def test_an_entry_that_reaches_back_into_another_transaction(tmp_path: Path) -> None:
    assert found(tmp_path, [(1, 6, 12, 13)], data(6), end(7, ControlRecordType.COMMIT), data(10), end(12)) == [
        "i:0: first offset 6, but a transaction ended at 7"
    ]


def test_a_last_stable_offset_that_is_too_high(tmp_path: Path) -> None:
    too_high = "i:0: last stable offset {}, but it was {} at most"
    assert found(tmp_path, [(1, 10, 12, 14)], data(10), end(12)) == [too_high.format(14, 13)]
    assert found(tmp_path, [(1, 10, 12, 13)], data(8, 2), data(10), end(12)) == [too_high.format(13, 8)]
    assert found(tmp_path, [(1, 10, 12, 8)], data(8, 2), data(10), end(12)) == []


def test_a_committed_transaction_in_the_index(tmp_path: Path) -> None:
    assert found(tmp_path, [ABORTED], data(10), end(12, ControlRecordType.COMMIT)) == [
        "i:0: offset 12 is no abort marker of producer 1"
    ]


def test_entries_in_disorder(tmp_path: Path) -> None:
    assert "i:34: marker offset 12 does not follow 12" in found(tmp_path, [ABORTED, ABORTED], data(10), end(12))


def test_half_an_entry(tmp_path: Path) -> None:
    assert found(tmp_path, [], tail=b"x") == ["i:0: 1 bytes at the end are not a whole entry"]
    assert found(tmp_path, [], tail=b"x", is_open=True) == []


def test_transactions_go_on_in_the_next_segment(tmp_path: Path) -> None:
    transactions = Transactions()
    findings: list[Finding] = []
    TransactionIndexCheck(str(tmp_path / "a"), 0, transactions, findings.append, is_open=False).see(data(3), "log", 0)
    TransactionIndexCheck(str(tmp_path / "b"), 5, transactions, findings.append, is_open=False).see(end(6), "log", 0)
    assert [finding.path for finding in findings] == [str(tmp_path / "b")]


def test_a_control_batch_without_a_type(tmp_path: Path) -> None:
    odd = build_batch(
        [SimpleRecord(NOW, b"", b"")], producer_id=1, producer_epoch=0, is_transactional=True, is_control=True
    )
    assert found(tmp_path, [], RecordBatch(memoryview(odd)))[0].startswith("log:0: control batch at offset 0: Invalid")
