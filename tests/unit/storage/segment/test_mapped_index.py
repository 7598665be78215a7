"""The file behind an index: pages, maps, eviction, trailing zeros, a full disk."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import pytest

from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.offset_index import OffsetIndex
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, too_many_files
from tests.support.disks.open_descriptors import open_below
from tests.support.disks.unreadable import make_unreadable


class FullDisk(OsFileSystem):
    """A disk where every allocation fails."""

    __slots__ = ()

    def allocate(self, fd: int, position: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class CutWatcher(OsFileSystem):
    """A disk that records its maps, and at each truncation the number of open ones."""

    __slots__ = ("maps", "open_at_cut")

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []
        self.open_at_cut: list[int] = []

    def map(self, fd: int, size: int) -> mmap.mmap:
        self.maps.append(super().map(fd, size))
        return self.maps[-1]

    def truncate(self, fd: int, size: int) -> None:
        self.open_at_cut.append(sum(not each.closed for each in self.maps))
        super().truncate(fd, size)


def new_index(
    directory: Path, open_files: OpenFiles | None = None, fs: FileSystem | None = None, name: str = "a"
) -> OffsetIndex:
    return OffsetIndex(
        str(directory / f"{name}.index"),
        0,
        1 << 20,
        fs or OsFileSystem(),
        OpenFiles() if open_files is None else open_files,
    )


def test_nothing_is_opened_before_the_first_entry(tmp_path: Path) -> None:
    open_files = OpenFiles()
    index = new_index(tmp_path, open_files)
    index.create()
    assert index.lookup(5) == (0, 0)
    assert not index.is_open
    assert len(open_files) == 0


def test_file_grows_by_pages_and_is_cut_at_the_close(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    path = Path(index.path)
    index.append(1, 1)
    assert path.stat().st_size == 4096
    for offset in range(2, 514):
        index.append(offset, offset)
    assert path.stat().st_size == 8192
    assert path.stat().st_blocks * 512 >= 8192, "no holes: a write into one could be SIGBUS"
    index.close()
    assert path.stat().st_size == 513 * 8


def test_trailing_zeros_of_a_file_not_closed_count_as_entries(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(1, 1)
    again = new_index(tmp_path)
    assert again.entries == 512, "as in Kafka: only recovery makes sense of such a file"
    index.discard()


def test_eviction_keeps_what_was_written(tmp_path: Path) -> None:
    open_files = OpenFiles(limit=1)
    first, second = new_index(tmp_path, open_files, name="a"), new_index(tmp_path, open_files, name="b")
    first.append(7, 70)
    second.append(8, 80)
    assert not first.is_open
    assert first.lookup(9) == (7, 70)
    first.append(9, 90)
    assert not second.is_open
    assert second.lookup(9) == (8, 80)
    for index in (first, second):
        index.close()
    assert Path(first.path).stat().st_size == 16


def test_full_disk_is_an_error_and_not_a_signal(tmp_path: Path) -> None:
    index = new_index(tmp_path, fs=FullDisk())
    with pytest.raises(OSError, match="No space left"):
        index.append(1, 1)
    assert index.entries == 0


def test_map_is_closed_before_the_file_is_cut(tmp_path: Path) -> None:
    fs = CutWatcher()
    index = new_index(tmp_path, fs=fs)
    for cut in (index.trim, index.close):
        index.append(index.entries + 1, 1)
        assert not fs.maps[-1].closed
        cut()
    assert fs.open_at_cut == [0, 0]
    assert len(fs.maps) == 2, "made anew after each cut"


@pytest.mark.parametrize("tail", [b"", bytes(8), bytes(3), bytes(5000)])
def test_a_file_is_left_as_it_is_when_the_same_entries_are_written_again(tmp_path: Path, tail: bytes) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"truncate", "allocate"}))
    index = new_index(tmp_path, fs=fs)
    for offset in (3, 5, 9):
        index.append(offset, offset)
    index.close()
    entries = Path(index.path).read_bytes()
    Path(index.path).write_bytes(entries + tail)
    fs.operations.clear()
    again = new_index(tmp_path, fs=fs)
    again.rewrite()
    assert again.entries == 0
    for offset in (3, 5, 9):
        again.append(offset, offset)
    again.trim()
    assert Path(index.path).read_bytes() == entries
    assert fs.operations == (["truncate"] if tail else [])
    assert again.is_dirty, "a broker that was killed may not have synced it"
    again.close()


def test_the_last_entry_is_read_without_a_map(tmp_path: Path) -> None:
    """An error of the disk is an OSError then. In a map it would be a SIGBUS."""
    fs = CutWatcher()
    for entries in (1, 2000):
        index = new_index(tmp_path, name=str(entries))
        for offset in range(entries):
            index.append(offset + 1, offset)
        index.close()
        again = new_index(tmp_path, fs=fs, name=str(entries))
        assert again.last_offset == entries
        assert (again.is_open, fs.maps) == (False, [])


def test_a_last_entry_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = new_index(tmp_path)
    index.append(3, 3)
    index.close()
    again = new_index(tmp_path)
    assert again.entries == 1
    with monkeypatch.context() as patched:
        make_unreadable(patched, tmp_path, ".index")
        with pytest.raises(OSError, match="Input/output error"):
            _ = again.last_offset
    os.truncate(index.path, 7)
    with pytest.raises(OSError, match="shorter than its entries"):
        _ = again.last_offset
    assert open_below(tmp_path) == []


def test_an_index_that_cannot_be_opened_for_a_sync_stays_dirty(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"open"}), failure=too_many_files)
    index = new_index(tmp_path, fs=fs)
    index.append(3, 3)
    fs.fail_at = fs.count + 1
    with pytest.raises(OSError, match="Too many open files"):
        index.open_for_sync()
    assert index.is_dirty
    fs.mend()
    fd = index.open_for_sync()
    assert fd is not None
    os.close(fd)
    assert not index.is_dirty
    index.close()


@pytest.mark.parametrize("offsets", [(), (3,), (3, 5), (4,), (3, 6, 7), (3, 5, 9, 11), tuple(range(600))])
def test_of_another_content_the_file_has_the_new_entries_alone(tmp_path: Path, offsets: tuple[int, ...]) -> None:
    index = new_index(tmp_path)
    for offset in (3, 5, 9):
        index.append(offset, offset)
    index.rewrite()
    for offset in offsets:
        index.append(offset, offset)
    index.trim()
    assert Path(index.path).stat().st_size == 8 * len(offsets)
    assert [tuple(index.entry(slot)) for slot in range(index.entries)] == [(offset, offset) for offset in offsets]
    index.close()


def test_rename_takes_the_file_along(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(5, 5)
    index.rename_to(index.path + ".deleted")
    assert index.lookup(6) == (5, 5)
    index.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["a.index.deleted"]


def test_untouched_index_is_not_cut_at_the_close(tmp_path: Path) -> None:
    path = tmp_path / "a.index"
    path.write_bytes(b"\x00\x00\x00\x01" * 4)
    index = new_index(tmp_path)
    index.close()
    assert path.stat().st_size == 16


def test_limit_can_change_but_not_below_what_is_there(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for offset in range(4):
        index.append(offset, offset)
    index.resize(16)
    assert index.max_entries == 4
    index.resize(1600)
    assert index.max_entries == 200
    index.discard()


def test_room_for_the_next_entries_is_made_ahead(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.make_room(513)
    assert index.is_open
    assert os.stat(index.path).st_size == 8192
    assert index.entries == 0
    index.make_room()
    assert os.stat(index.path).st_size == 8192
    index.close()
    assert os.stat(index.path).st_size == 0


def test_half_allocated_page_is_given_back(tmp_path: Path) -> None:
    """Zeros at the end of an index would count as entries."""
    fs = FaultyFileSystem(2, disk_full, kinds=frozenset({"allocate"}))
    index = OffsetIndex(str(tmp_path / "a.index"), 0, 1 << 20, fs, OpenFiles())
    for offset in range(1, 513):
        index.append(offset, offset)
    with pytest.raises(OSError, match="No space"):
        index.make_room()
    assert os.stat(index.path).st_size == 4096
    assert index.lookup(600) == (512, 512)
