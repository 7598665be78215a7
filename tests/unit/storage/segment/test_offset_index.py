"""The offset index compared with a linear scan, and its file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.mapped_index import InvalidOffsetError
from odradek.storage.segment.offset_index import OffsetIndex

BASE = 1_000


def new_index(directory: str | Path, max_bytes: int = 1 << 20) -> OffsetIndex:
    return OffsetIndex(str(Path(directory) / "i.index"), BASE, max_bytes, OsFileSystem(), OpenFiles())


@st.composite
def entries(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Up to three thousand entries, so that both the warm and the cold section are searched."""
    count = draw(st.integers(0, 40) | st.sampled_from([1023, 1024, 1025, 1026, 3000]))
    step = draw(st.integers(1, 7))
    return [(BASE + 3 + slot * step, slot * 100 + 5) for slot in range(count)]


@given(entries(), st.lists(st.integers(-10, 25_000), max_size=20))
def test_lookup_agrees_with_a_linear_scan(pairs: list[tuple[int, int]], targets: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        index = new_index(directory)
        index.create()
        for offset, position in pairs:
            index.append(offset, position)
        for target in [BASE + t for t in targets] + [offset for offset, _ in pairs[-3:]]:
            expected = max((pair for pair in pairs if pair[0] <= target), default=(BASE, 0))
            assert index.lookup(target) == expected
            above = [offset for offset, position in pairs if position >= target - BASE]
            assert index.offset_at_or_after_position(target - BASE) == (min(above) if above else None)
        index.close()
        assert (Path(directory) / "i.index").stat().st_size == 8 * len(pairs)


@given(entries(), st.integers(-5, 25_000))
def test_truncation_keeps_the_entries_below(pairs: list[tuple[int, int]], cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        index = new_index(directory)
        for offset, position in pairs:
            index.append(offset, position)
        index.truncate_to(BASE + cut)
        kept = [pair for pair in pairs if pair[0] < BASE + cut]
        assert [tuple(index.entry(slot)) for slot in range(index.entries)] == kept
        assert index.last_offset == (kept[-1][0] if kept else BASE)
        index.append(BASE + 30_000, 1)
        index.close()
        again = new_index(directory)
        assert again.entries == len(kept) + 1
        assert again.last_offset == BASE + 30_000
        again.discard()


def test_offsets_must_increase(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(BASE, 0)
    with pytest.raises(InvalidOffsetError):
        index.append(BASE, 10)
    index.discard()


def test_full_index(tmp_path: Path) -> None:
    index = new_index(tmp_path, max_bytes=23)
    index.append(BASE + 1, 1)
    assert index.room == 1
    index.append(BASE + 2, 2)
    assert index.room == 0
    index.discard()


def test_slots_outside_are_refused(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.create()
    with pytest.raises(IndexError):
        index.entry(0)


def test_truncation_leaves_nothing_behind_in_the_file(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for slot in range(10):
        index.append(BASE + 1 + slot, slot + 1)
    index.truncate_to(BASE + 4)
    assert index.entries == 3
    data = Path(index.path).read_bytes()
    assert any(data[: 3 * 8])
    assert not any(data[3 * 8 :])
    index.truncate_to(BASE)
    assert index.entries == 0
    assert not any(Path(index.path).read_bytes()), "the file is not cut: that may take long"
    assert Path(index.path).stat().st_size
    index.close()
    assert Path(index.path).read_bytes() == b""
