"""A segment's file: positions, torn tails, regions and their descriptors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.errors import CorruptLogError
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.protocol.records.legacy import build_message
from odradek.protocol.records.record import Record
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.file_records import FileRecords
from tests.support.disks.faulty_disk import FaultyFileSystem, io_error
from tests.support.disks.logs import NOW, batch


def new_records(directory: Path | str, open_files: OpenFiles | None = None, name: str = "0.log") -> FileRecords:
    return FileRecords.create(
        str(Path(directory) / name), OsFileSystem(), OpenFiles() if open_files is None else open_files
    )


def existing(records: FileRecords) -> FileRecords:
    return FileRecords.existing(records.path, OsFileSystem(), OpenFiles())


def test_append_writes_the_parts_one_after_the_other(tmp_path: Path) -> None:
    records = new_records(tmp_path)
    assert records.append([b"abc", memoryview(b"def")]) == 6
    assert records.append([b"g"]) == 1
    assert (records.size, records.read(2, 100), records.read(7, 5)) == (7, b"cdefg", b"")
    records.close()


@given(st.lists(st.integers(0, 6000), max_size=12), st.integers(0, 40))
def test_find_offset_agrees_with_a_walk(sizes: list[int], target: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        records = new_records(directory)
        expected = []
        for index, size in enumerate(sizes):
            data = batch(b"x" * size, b"y", base_offset=index * 3)
            expected.append((index * 3, index * 3 + 1, records.size, len(data), NOW + 1))
            records.append([data])
        assert [tuple(found) for found in records.positions()] == expected
        first = next((where for where in expected if where[1] >= target), None)
        assert records.find_offset(target) == first
        assert [(position, each.base_offset) for position, each in records.batches()] == [
            (where[2], where[0]) for where in expected
        ]
        records.close()


@given(st.integers(1, 200))
def test_torn_tail_is_passed_over_in_silence(cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        records = new_records(directory)
        whole, torn = batch(b"whole"), batch(b"torn" * 50, base_offset=1)
        records.append([whole, torn[: min(cut, len(torn) - 1)]])
        assert [where.base_offset for where in records.positions()] == [0]
        if cut <= 11:  # too short for a length
            assert [each.base_offset for _, each in records.batches()] == [0]
        records.close()


@pytest.mark.parametrize("length", [0, 13, -1])
def test_impossible_length_is_corruption(tmp_path: Path, length: int) -> None:
    records = new_records(tmp_path)
    records.append([batch(b"good"), bytes(8), length.to_bytes(4, "big", signed=True), bytes(40)])
    with pytest.raises(CorruptLogError):
        list(records.positions())
    with pytest.raises(CorruptLogError):
        list(records.batches())
    assert records.find_offset(0) is not None
    records.close()


def test_messages_of_old_formats_are_walked_too(tmp_path: Path) -> None:
    records = new_records(tmp_path)
    old = [build_message(1, n, NOW, b"k", b"v") for n in range(3)]
    records.append(old)
    assert [where.last_offset for where in records.positions()] == [0, 1, 2]
    assert records.find_offset(2) is not None
    assert [where.max_timestamp for where in records.positions()] == [NOW] * 3
    assert [records.find_offset(offset) for offset in range(3)] == list(records.positions())
    records.close()


@pytest.mark.parametrize("value", [b"", b"v" * 5_000])
def test_messages_of_format_0_have_no_timestamp(tmp_path: Path, value: bytes) -> None:
    records = new_records(tmp_path)
    records.append([build_message(0, n, NOW, b"k", value) for n in range(3)])
    assert [where.max_timestamp for where in records.positions()] == [NO_TIMESTAMP] * 3
    assert [records.find_offset(offset) for offset in range(3)] == list(records.positions())
    records.close()


def test_batches_larger_than_a_read_are_read_whole(tmp_path: Path) -> None:
    records = new_records(tmp_path)
    values = [b"a" * 10, b"b" * 3_000_000, b"c" * 10]
    for offset, value in enumerate(values):
        records.append([batch(value, base_offset=offset)])
    found = [next(each.records()) for _, each in existing(records).batches()]
    assert [record.value for record in found] == values
    assert isinstance(found[0], Record)
    records.close()


def test_truncation(tmp_path: Path) -> None:
    records = new_records(tmp_path)
    records.append([b"0123456789"])
    assert records.truncate_to(4) == 6
    assert os.stat(records.path).st_size == 4
    with pytest.raises(ValueError, match="cannot truncate"):
        records.truncate_to(5)
    records.close()


class TestCutLater:
    """The records end at once; the file is cut by whoever comes first, and once."""

    @pytest.fixture
    def records(self, tmp_path: Path) -> FileRecords:
        records = new_records(tmp_path)
        records.append([b"abcdefgh"])
        assert records.cut_later(3) == 5
        return records

    def test_the_end_is_lower_and_the_file_is_as_before(self, records: FileRecords) -> None:
        assert (records.size, records.read(0, 100), records.region(2, 100).size_in_bytes) == (3, b"abc", 1)
        assert Path(records.path).read_bytes() == b"abcdefgh"

    def test_a_thread_cuts_the_file(self, records: FileRecords) -> None:
        cut, fd = records.cut, records.duplicate_fd()
        assert cut is not None
        cut.carry_out(fd)
        os.close(fd)
        assert Path(records.path).read_bytes() == b"abc"

    def test_an_append_comes_after_the_cut_and_stays(self, records: FileRecords) -> None:
        cut, fd = records.cut, records.duplicate_fd()
        assert cut is not None
        records.append([b"X"])
        assert Path(records.path).read_bytes() == b"abcX"
        cut.carry_out(fd)
        os.close(fd)
        assert Path(records.path).read_bytes() == b"abcX", "the thread comes too late"

    def test_a_finished_file_is_cut(self, records: FileRecords) -> None:
        records.trim()
        assert Path(records.path).read_bytes() == b"abc"

    def test_a_second_cut_is_the_one_that_counts(self, records: FileRecords) -> None:
        first, fd = records.cut, records.duplicate_fd()
        assert first is not None
        records.cut_later(1)
        first.carry_out(fd)
        os.close(fd)
        records.trim()
        assert Path(records.path).read_bytes() == b"a"

    def test_a_cut_that_fails_is_done_before_the_next_append(self, tmp_path: Path) -> None:
        fs = FaultyFileSystem(failure=io_error, for_good=False)
        records = FileRecords.create(str(tmp_path / "0.log"), fs, OpenFiles())
        records.append([b"abcdefgh"])
        records.cut_later(3)
        fs.fail_at = fs.count + 1
        with pytest.raises(OSError, match="Input/output"):
            records.append([b"X"])
        assert fs.failed.startswith("truncate")
        records.append([b"Y"])
        assert Path(records.path).read_bytes() == b"abcY"

    @pytest.mark.parametrize("size", [-1, 9])
    def test_sizes_that_the_file_does_not_have_are_refused(self, tmp_path: Path, size: int) -> None:
        records = new_records(tmp_path)
        records.append([b"abcdefgh"])
        with pytest.raises(ValueError, match="cannot truncate"):
            records.cut_later(size)


def test_a_preallocated_file_is_sparse_and_cut_to_its_batches(tmp_path: Path) -> None:
    records = FileRecords.create(str(tmp_path / "p.log"), OsFileSystem(), OpenFiles(), preallocate=8192)
    assert os.stat(records.path).st_blocks < 8192 // 512
    records.append([b"abc"])
    assert os.stat(records.path).st_size == 8192
    records.trim()
    assert os.stat(records.path).st_size == 3
    records.close()


def test_closed_segment_holds_no_descriptor_until_it_is_read(tmp_path: Path) -> None:
    writer = new_records(tmp_path)
    writer.append([b"abc"])
    open_files = OpenFiles()
    records = FileRecords.existing(writer.path, OsFileSystem(), open_files)
    assert (records.size, len(open_files)) == (3, 0)
    assert records.read(0, 3) == b"abc"
    assert len(open_files) == 1
    records.close()
    assert len(open_files) == 0
    writer.close()


def test_region_names_bytes_without_reading_them(tmp_path: Path) -> None:
    records = new_records(tmp_path)
    records.append([b"0123456789"])
    region = records.region(3, 100)
    assert (region.size_in_bytes, len(region), region.position, region.read()) == (7, 7, 3, b"3456789")
    assert records.region(50, 5).size_in_bytes == 0
    records.truncate_to(5)
    assert region.read() == b"34", "short, so that the connection notices"
    records.close()


def test_pinned_region_survives_eviction_and_close(tmp_path: Path) -> None:
    open_files = OpenFiles(limit=1)
    records = new_records(tmp_path, open_files)
    records.append([b"abc"])
    region = records.region(0, 3)
    region.retain()
    fd = region.fileno()
    other = new_records(tmp_path, open_files, "1.log")
    assert os.pread(fd, 3, 0) == b"abc", "not evicted"
    records.close()
    assert os.pread(fd, 3, 0) == b"abc", "not closed"
    region.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    region.release()
    other.close()
