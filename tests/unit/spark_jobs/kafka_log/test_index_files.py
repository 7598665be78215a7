from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.kafka_log.index_files import OFFSET_ENTRY, TIME_ENTRY, open_index

ENTRIES = [(3, 100), (5, 250), (9, 400)]


@pytest.mark.parametrize("zeros", [0, 1, 2, 5, 1000])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_zeros_behind_the_entries_do_not_count(tmp_path: Path, count: int, zeros: int) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(*entry) for entry in ENTRIES[:count]) + bytes(8 * zeros))
    with open_index(str(path), OFFSET_ENTRY) as index:
        assert index is not None
        assert index.entries == count
        assert index.last() == (ENTRIES[count - 1] if count else None)


def test_floors_and_ceilings(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(*entry) for entry in ENTRIES) + bytes(64))
    with open_index(str(path), OFFSET_ENTRY) as index:
        assert index is not None
        assert [index.floor(0, offset) for offset in (2, 3, 4, 5, 8, 9, 100)] == [
            None,
            *[ENTRIES[0]] * 2,
            *[ENTRIES[1]] * 2,
            *[ENTRIES[2]] * 2,
        ]
        assert [index.above(1, position) for position in (0, 99, 100, 399, 400)] == [
            *[ENTRIES[0]] * 2,
            ENTRIES[1],
            ENTRIES[2],
            None,
        ]


def test_an_index_that_is_cut_while_it_is_read_is_a_wrong_hint_and_no_error(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(TIME_ENTRY.pack(1000, 5) + TIME_ENTRY.pack(2000, 9))
    with open_index(str(path), TIME_ENTRY) as index:
        assert index is not None
        path.write_bytes(b"")
        assert index.last() == (0, 0)
        assert index.floor(0, 1500) == (0, 0)


def test_without_a_file_there_is_no_index(tmp_path: Path) -> None:
    with open_index(str(tmp_path / "index"), OFFSET_ENTRY) as index:
        assert index is None
