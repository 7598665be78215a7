"""The time index compared with a linear scan."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.mapped_index import InvalidOffsetError
from odradek.storage.segment.time_index import TimeIndex

BASE = 50


def new_index(directory: str | Path, max_bytes: int = 1 << 20) -> TimeIndex:
    return TimeIndex(str(Path(directory) / "i.timeindex"), BASE, max_bytes, OsFileSystem(), OpenFiles())


appends = st.lists(st.tuples(st.integers(-1, 500), st.integers(0, 3)), max_size=60)


@given(appends, st.lists(st.integers(-5, 510), max_size=10), st.integers(BASE - 1, BASE + 200))
def test_lookup_and_truncation_agree_with_a_linear_scan(
    steps: list[tuple[int, int]], targets: list[int], cut: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        index = new_index(directory)
        expected: list[tuple[int, int]] = []
        offset = BASE
        for timestamp, step in steps:
            offset += step
            index.maybe_append(timestamp, offset)
            if timestamp > (expected[-1][0] if expected else -1):
                expected.append((timestamp, offset))
        assert [tuple(index.entry(slot)) for slot in range(index.entries)] == expected
        for target in targets:
            assert index.lookup(target) == max((e for e in expected if e[0] <= target), default=(-1, BASE))
        index.truncate_to(cut)
        kept = [entry for entry in expected if entry[1] < cut]
        assert [tuple(index.entry(slot)) for slot in range(index.entries)] == kept
        assert index.last_entry == (kept[-1] if kept else (-1, BASE))
        index.close()
        assert Path(index.path).stat().st_size == 12 * len(kept) if index.entries or expected else True


def test_offsets_must_not_decrease(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.maybe_append(10, BASE + 5)
    with pytest.raises(InvalidOffsetError):
        index.maybe_append(11, BASE + 4)
    index.discard()


def test_one_slot_stays_free_for_the_final_entry(tmp_path: Path) -> None:
    index = new_index(tmp_path, max_bytes=24)
    assert index.room == 1
    index.maybe_append(1, BASE)
    assert index.room == 0
    index.maybe_append(2, BASE + 1)
    assert index.entries == 2
    index.discard()
