"""Aborted transactions of a segment: the ones that a reader gets."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.transaction_index import (
    ENTRIES_A_READ,
    ENTRY,
    AbortedTxn,
    CorruptIndexError,
    TransactionIndex,
)
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full
from tests.support.disks.open_descriptors import open_below

ABORTED = [
    AbortedTxn(1, 0, 10, 5),
    AbortedTxn(2, 5, 15, 16),
    AbortedTxn(3, 18, 35, 32),
    AbortedTxn(4, 32, 50, 51),
]


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    return TransactionIndex(str(tmp_path / "0.txnindex"), 0, OsFileSystem(), OpenFiles())


def test_file_appears_with_the_first_entry(index: TransactionIndex) -> None:
    assert index.is_empty
    index.sanity_check()
    assert not Path(index.path).exists()
    index.append(ABORTED[0])
    assert Path(index.path).stat().st_size == 34


@pytest.mark.parametrize(
    ("fetch_offset", "upper", "found", "is_complete"),
    [
        (0, 100, ABORTED, False),
        (0, 32, ABORTED[:3], True),
        (16, 35, ABORTED[2:], True),
        (11, 32, ABORTED[1:3], True),
        (51, 100, [], False),
        (0, 5, ABORTED[:1], True),
    ],
)
def test_collect(
    index: TransactionIndex, fetch_offset: int, upper: int, found: list[AbortedTxn], is_complete: bool
) -> None:
    for aborted in ABORTED:
        index.append(aborted)
    assert index.collect(fetch_offset, upper) == (found, is_complete)


@given(st.integers(0, 60), st.integers(1, 60))
def test_collect_overlaps_and_nothing_else(fetch_offset: int, size: int) -> None:
    with TemporaryDirectory() as directory:
        index = TransactionIndex(f"{directory}/0.txnindex", 0, OsFileSystem(), OpenFiles())
        index.append(*ABORTED)
        upper = fetch_offset + size
        found, _ = index.collect(fetch_offset, upper)
    assert found == [a for a in ABORTED if a.last_offset >= fetch_offset and a.first_offset < upper]


def test_truncation_and_reopening(index: TransactionIndex, tmp_path: Path) -> None:
    for aborted in ABORTED:
        index.append(aborted)
    index.truncate_to(35)
    assert list(TransactionIndex(index.path, 0, OsFileSystem(), OpenFiles())) == ABORTED[:2]
    index.append(ABORTED[2])
    assert list(TransactionIndex(index.path, 0, OsFileSystem(), OpenFiles())) == ABORTED[:3]
    index.clear()
    assert not Path(index.path).exists()
    index.append(ABORTED[0])
    assert list(index) == ABORTED[:1]


def many(count: int) -> list[AbortedTxn]:
    return [AbortedTxn(number, 3 * number, 3 * number + 1, 3 * number + 2) for number in range(count)]


def test_a_fetch_reads_the_few_entries_that_it_needs(index: TransactionIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither memory nor the time on the event loop grows with the aborted transactions that a log retains."""
    written = many(20_000)
    index.append(*written)
    pread = os.pread
    sizes: list[int] = []

    def counted(fd: int, size: int, position: int) -> bytes:
        sizes.append(size)
        return pread(fd, size, position)

    monkeypatch.setattr(os, "pread", counted)
    assert index.collect(30_000, 30_005) == (written[10_000:10_002], True)
    assert sum(sizes) <= 5_000
    sizes.clear()
    assert index.collect(3 * len(written), 3 * len(written) + 1) == ([], False)
    assert not sizes, "nothing in it ends so late: the file is not even opened"
    tracemalloc.start()
    try:
        assert len(index.collect(0, 600)[0]) == 200
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 5_000
    assert peak < 200_000
    assert not open_below(Path(index.path).parent)


def test_more_entries_than_one_read_gives(index: TransactionIndex) -> None:
    written = many(3 * ENTRIES_A_READ + 1)
    index.append(*written)
    assert list(index) == written
    assert index.collect(0, 10_000) == (written, False)
    index.truncate_to(3 * ENTRIES_A_READ)
    assert list(index) == written[:ENTRIES_A_READ]
    index.append(written[-1])
    assert list(index) == [*written[:ENTRIES_A_READ], written[-1]]


@pytest.mark.parametrize("size", [0, 40, None])
def test_entries_that_have_gone_are_not_taken_for_none(index: TransactionIndex, size: int | None) -> None:
    """A reader of committed data would get aborted records."""
    index.append(*ABORTED)
    if size is None:
        Path(index.path).unlink()
    else:
        os.truncate(index.path, size)
    with pytest.raises(CorruptIndexError):
        index.collect(0, 100)


def test_markers_must_increase(index: TransactionIndex) -> None:
    index.append(ABORTED[1])
    with pytest.raises(ValueError, match="must increase"):
        index.append(ABORTED[0])


@pytest.mark.parametrize("content", [b"\x00" * 33, ENTRY.pack(1, 1, 0, 10, 11), ENTRY.pack(0, 1, 0, 99, 100)])
def test_corrupt_files_are_found(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "100.txnindex"
    path.write_bytes(content)
    with pytest.raises(CorruptIndexError):
        TransactionIndex(str(path), 100, OsFileSystem(), OpenFiles()).sanity_check()


@pytest.mark.parametrize("there", [0, 1])
def test_entries_are_added_all_or_none(tmp_path: Path, there: int) -> None:
    fs = FaultyFileSystem(there + 1, disk_full, kinds=frozenset({"append"}))
    index = TransactionIndex(str(tmp_path / "0.txnindex"), 0, fs, OpenFiles())
    for txn in ABORTED[:there]:
        index.append(txn)
    with pytest.raises(OSError, match="No space"):
        index.append(*ABORTED[there:])
    assert Path(index.path).stat().st_size == 34 * there
    assert list(index) == ABORTED[:there]
    fs.mend()
    index.append(*ABORTED[there:])
    assert list(index) == list(TransactionIndex(index.path, 0, fs, OpenFiles())) == ABORTED
