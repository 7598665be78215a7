from __future__ import annotations

import pytest

from odradek.storage.offsets import EpochEntry
from odradek.storage.verification.epoch_check import EpochCheck, check_order
from odradek.storage.verification.findings import Finding

ENTRIES = [EpochEntry(0, 0), EpochEntry(2, 40), EpochEntry(5, 70)]


def found(*batches: tuple[int, int], start: int = 0, end: int = 1000) -> list[str]:
    findings: list[Finding] = []
    check = EpochCheck(ENTRIES, start, end, findings.append)
    for position, (epoch, last_offset) in enumerate(batches):
        check.see("log", position, epoch, last_offset)
    return [str(finding) for finding in findings]


def test_batches_bear_the_epoch_of_their_entry() -> None:
    assert found((0, 0), (0, 39), (2, 40), (2, 69), (5, 70), (5, 900)) == []


def test_batches_in_a_row_with_a_wrong_epoch_are_reported_once() -> None:
    assert found((0, 39), (3, 40), (3, 41), (4, 42), (5, 70)) == [
        "log:1: the batch that ends at offset 40 has leader epoch 3, leader-epoch-checkpoint says 2",
        "log:3: the batch that ends at offset 42 has leader epoch 4, leader-epoch-checkpoint says 2",
    ]


def test_a_batch_before_the_first_entry_has_none() -> None:
    findings: list[Finding] = []
    EpochCheck(ENTRIES[1:], 0, 100, findings.append).see("log", 0, 0, 39)
    assert findings[0].message.endswith("says none")


@pytest.mark.parametrize(("offset", "is_looked_at"), [(39, False), (40, True), (59, True), (60, False)])
def test_batches_outside_of_the_range_are_ignored(offset: int, is_looked_at: bool) -> None:
    assert bool(found((9, offset), start=40, end=60)) is is_looked_at


@pytest.mark.parametrize("entry", [EpochEntry(5, 71), EpochEntry(6, 70), EpochEntry(4, 80), EpochEntry(9, 3)])
def test_order(entry: EpochEntry) -> None:
    findings: list[Finding] = []
    assert check_order("file", ENTRIES, findings.append)
    assert not check_order("file", [*ENTRIES, entry], findings.append)
    assert len(findings) == 1
