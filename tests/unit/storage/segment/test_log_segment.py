"""One segment: its sparse indexes, its reads, its truncation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.storage.append_info import AppendedBatch, SegmentOffsetOverflowError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.disk.disk_space import DiskFullError
from odradek.storage.offsets import TimestampOffset
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error
from tests.support.disks.logs import NOW, Disk, batch, read_bytes
from tests.support.disks.open_descriptors import open_below


def new_segment(directory: Path, base_offset: int = 0, **overrides: str) -> LogSegment:
    config = LogConfig.from_props({}, {name.replace("_", "."): value for name, value in overrides.items()})
    return LogSegment.open(str(directory), base_offset, config, Disk(directory).environment, create=True)


def put(segment: LogSegment, offset: int, *values: bytes, timestamp: int = NOW) -> None:
    data = batch(*values, base_offset=offset, timestamp=timestamp)
    last = offset + len(values) - 1
    segment.append([data], last, RecordBatch(data).max_timestamp, last)


def offset_entries(segment: LogSegment) -> list[tuple[int, int]]:
    return [tuple(segment.offset_index.entry(slot)) for slot in range(segment.offset_index.entries)]  # type: ignore[misc]


def time_entries(segment: LogSegment) -> list[tuple[int, int]]:
    return [tuple(segment.time_index.entry(slot)) for slot in range(segment.time_index.entries)]  # type: ignore[misc]


def test_first_batch_is_never_indexed_and_an_entry_pairs_last_offset_with_start_position(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 40, index_interval_bytes="100")
    put(segment, 40, b"x" * 200)
    assert offset_entries(segment) == []
    start = segment.size
    put(segment, 41, b"y", b"z", timestamp=NOW + 5)
    assert offset_entries(segment) == [(42, start)]
    assert time_entries(segment) == [(NOW + 6, 42)]
    put(segment, 43, b"small")
    assert len(offset_entries(segment)) == 1, "not enough bytes since the last entry"
    segment.close()


def test_time_index_keeps_the_largest_timestamp_so_far(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    for offset, timestamp in enumerate([NOW + 9, NOW + 5, NOW + 20, NOW + 1]):
        put(segment, offset, b"x", timestamp=timestamp)
    assert time_entries(segment) == [(NOW + 9, 0), (NOW + 20, 2)]
    assert segment.largest == (NOW + 20, 2)
    segment.close()


def test_close_adds_the_last_time_entry_and_cuts_the_indexes(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"x")
    segment.close()
    assert (tmp_path / "00000000000000000000.timeindex").stat().st_size == 12
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 0


def test_batches_of_one_write_are_indexed_one_by_one(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    parts = [batch(b"x", base_offset=offset, timestamp=NOW + offset) for offset in range(3)]
    segment.append_batches(parts, [AppendedBatch(n, NOW + n, n, len(part)) for n, part in enumerate(parts)])
    assert [offset for offset, _ in offset_entries(segment)] == [1, 2]
    assert [position for _, position in offset_entries(segment)] == [len(parts[0]), len(parts[0]) * 2]
    segment.close()


def test_read_finds_the_batch_and_honours_the_limits(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", b"b")
    middle = segment.size
    put(segment, 5, b"c")
    end = segment.size
    found = segment.read(1, 10_000, end, min_one_message=False)
    assert found is not None
    assert (found.fetch_offset_metadata.relative_position, found.size_in_bytes) == (0, end)
    found = segment.read(3, 10_000, end, min_one_message=False)
    assert found is not None
    assert RecordBatch(memoryview(read_bytes(found))).base_offset == 5
    found = segment.read(0, 10_000, middle, min_one_message=False)
    assert found is not None
    assert found.size_in_bytes == middle
    found = segment.read(0, 0, end, min_one_message=False)
    assert found is not None
    assert found.size_in_bytes == 0
    assert segment.read(6, 10_000, end, min_one_message=True) is None
    segment.close()


def test_truncation_drops_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, index_interval_bytes="0")
    put(segment, 0, b"a", timestamp=NOW)
    put(segment, 1, b"b", b"c", timestamp=NOW + 10)
    put(segment, 3, b"d", timestamp=NOW + 20)
    assert segment.truncate_to(2, NOW) > 0
    assert segment.read_next_offset() == 1
    assert offset_entries(segment) == []
    assert segment.largest == (NOW, 0)
    segment.close()


def test_a_read_after_a_truncation_finds_what_was_appended_since(tmp_path: Path) -> None:
    """A segment remembers the batch of its last read."""
    segment = new_segment(tmp_path)

    def size_read(offset: int) -> int:
        found = segment.read(offset, 1 << 20, segment.size, min_one_message=True)
        assert found is not None
        return found.size_in_bytes

    put(segment, 0, b"a")
    put(segment, 1, b"b", b"c")
    assert [size_read(offset) for offset in (0, 1, 2)] == [segment.size] + [len(batch(b"b", b"c"))] * 2
    segment.truncate_to(1, NOW)
    put(segment, 1, b"longer than before")
    put(segment, 2, b"and behind it another one")
    assert size_read(2) == len(batch(b"and behind it another one"))
    segment.close()


def test_truncation_of_all_records_restarts_the_age(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", timestamp=NOW)
    segment.truncate_to(0, NOW + 77)
    assert (segment.size, segment.created_ms) == (0, NOW + 77)
    assert segment.time_waited_for_roll(NOW + 80, NOW + 500) == 3
    segment.close()


def test_offsets_beyond_31_bits_are_refused(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 10)
    for offset in (9, 10 + 2**31):
        with pytest.raises(SegmentOffsetOverflowError):
            put(segment, offset, b"a")
    assert segment.size == 0
    segment.close()


def test_retention_time_falls_back_to_the_file(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a", timestamp=-1)
    os.utime(segment.records.path, ns=(0, 5_000_000_000))
    assert segment.largest_timestamp == 5_000
    put(segment, 1, b"a", timestamp=NOW)
    assert segment.largest_timestamp == NOW
    segment.close()


def test_suffixes_and_directories(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, b"a")
    segment.change_suffix("", ".deleted")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
    ]
    segment.change_dir("/elsewhere")
    assert all(path.startswith("/elsewhere/") for path in segment.paths)
    segment.discard()


def test_preallocated_segment_is_trimmed_when_it_becomes_inactive(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, preallocate="true", segment_bytes="8192")
    put(segment, 0, b"a")
    assert os.stat(segment.records.path).st_size == 8192
    segment.become_inactive()
    assert os.stat(segment.records.path).st_size == segment.size
    segment.close()


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_what_cannot_be_opened_for_a_sync_leaves_no_descriptor(tmp_path: Path, fails_at: int) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"open"}), failure=io_error)
    config = LogConfig.from_props({}, {"index.interval.bytes": "0"})
    segment = LogSegment.open(str(tmp_path), 0, config, Disk(tmp_path, fs=fs).environment, create=True)
    for offset in range(3):
        put(segment, offset, b"x")
    segment.txn_index.append(AbortedTxn(1, 0, 1, 1))
    before = open_below(tmp_path)
    fs.fail_at = fs.count + fails_at
    with pytest.raises(OSError, match="Input/output error"):
        segment.sync_descriptors()
    assert open_below(tmp_path) == before
    fs.mend()
    descriptors = segment.sync_descriptors(unchanged_too=True)
    assert sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in descriptors) == sorted(segment.paths)
    for fd in descriptors:
        os.close(fd)
    segment.discard()


class TestNoSpace:
    """An append that finds no space changes nothing."""

    def new(self, path: Path, kind: str, fail_at: int = 1) -> LogSegment:
        path.mkdir(exist_ok=True)
        self.fs = FaultyFileSystem(fail_at, disk_full, kinds=frozenset({kind}), for_good=False)
        config = LogConfig.from_props({}, {"index.interval.bytes": "100"})
        return LogSegment.open(str(path), 0, config, Disk(path, fs=self.fs).environment, create=True)

    @pytest.mark.parametrize(
        ("kind", "fail_at"),
        [("append", 1), ("append", 2), ("append", 3), ("allocate", 1), ("allocate", 2)],
    )
    def test_files_and_segment_are_as_before(self, tmp_path: Path, kind: str, fail_at: int) -> None:
        segment, model = self.new(tmp_path / "full", kind, fail_at), self.new(tmp_path / "empty", "none")
        refused = 0
        for offset in range(4):
            size = segment.size
            try:
                put(segment, offset, b"x" * 200)
            except DiskFullError:
                refused += 1
                assert segment.size == size == os.stat(segment.records.path).st_size
                put(segment, offset, b"x" * 200)
            put(model, offset, b"x" * 200)
        assert refused == 1
        assert offset_entries(segment) == offset_entries(model) != []
        assert time_entries(segment) == time_entries(model)
        assert segment.time_waited_for_roll(0, NOW + 9) == model.time_waited_for_roll(0, NOW + 9)
        for each in (segment, model):
            each.close()
        for one, other in zip(segment.paths, model.paths, strict=True):
            assert os.path.exists(one) == os.path.exists(other)
            assert not os.path.exists(one) or Path(one).read_bytes() == Path(other).read_bytes()

    def test_records_are_truncated_when_their_abort_cannot_be_indexed(self, tmp_path: Path) -> None:
        segment = self.new(tmp_path, "append", 2)
        data = batch(b"marker")
        with pytest.raises(DiskFullError):
            segment.append([data], 0, NOW, 0, [AbortedTxn(1, 0, 0, 1)])
        assert segment.size == os.stat(segment.records.path).st_size == 0
        segment.append([data], 0, NOW, 0, [AbortedTxn(1, 0, 0, 1)])
        assert list(segment.txn_index) == [(1, 0, 0, 1)]
        segment.close()

    def test_room_is_made_for_each_batch_of_a_write(self, tmp_path: Path) -> None:
        segment = self.new(tmp_path, "append", 2)
        put(segment, 0, b"x" * 200)
        many = [batch(b"x" * 200, base_offset=offset) for offset in range(1, 1_000)]
        entries = [AppendedBatch(offset, NOW + offset, offset, len(many[0])) for offset in range(1, 1_000)]
        with pytest.raises(DiskFullError):
            segment.append_batches(many, entries)
        assert os.stat(segment.offset_index.path).st_size == 8192
        segment.append_batches(many, entries)
        assert len(offset_entries(segment)) == 999
        segment.close()

    def test_any_other_error_is_passed_on(self, tmp_path: Path) -> None:
        segment = self.new(tmp_path, "append")
        self.fs.failure = io_error
        with pytest.raises(OSError, match="Input/output") as error:
            put(segment, 0, b"x")
        assert not isinstance(error.value, DiskFullError)
        segment.close()

    def test_creation_that_fails_leaves_no_descriptor(self, tmp_path: Path) -> None:
        environment = Disk(tmp_path, fs=FaultyFileSystem(2, disk_full, kinds=frozenset({"create"}))).environment
        with pytest.raises(OSError, match="No space"):
            LogSegment.open(str(tmp_path), 0, LogConfig.from_props({}, {}), environment, create=True)
        assert not environment.open_files


def finished(path: Path) -> LogSegment:
    segment = new_segment(path, index_interval_bytes="100")
    for offset in range(5):
        put(segment, offset, b"x" * 80, timestamp=NOW + offset)
    segment.become_inactive()
    return segment


def reopened(directory: Path) -> LogSegment:
    return LogSegment.open(str(directory), 0, LogConfig.from_props({}, {}), Disk(directory).environment)


def test_indexes_are_known_to_be_finished(tmp_path: Path) -> None:
    segment = finished(tmp_path)
    assert reopened(tmp_path).has_finished_indexes()
    put(segment, 5, b"x", timestamp=NOW + 5)
    assert not reopened(tmp_path).has_finished_indexes(), "its last word on time is missing"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert new_segment(empty).has_finished_indexes()


@pytest.mark.parametrize("name", ["0.index", "0.timeindex"])
@pytest.mark.parametrize("damage", ["zeros behind", "last entry torn", "last entry lost"])
def test_unfinished_indexes_are_noticed(tmp_path: Path, name: str, damage: str) -> None:
    path = Path(finished(tmp_path).offset_index.path).parent / ("0" * 19 + name)
    content, size = path.read_bytes(), 8 if name == "0.index" else 12
    torn = content[:-size] + b"\x00" * (size - 3) + content[-3:]
    left = {"zeros behind": content + bytes(size), "last entry torn": torn, "last entry lost": content[:-size]}
    path.write_bytes(left[damage])
    # An offset index is sparse: without its last entry it is still valid.
    assert reopened(tmp_path).has_finished_indexes() == ((name, damage) == ("0.index", "last entry lost"))


def test_rebuilt_index_has_a_file_even_without_entries(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    os.unlink(segment.offset_index.path)
    segment.begin_rebuild()
    segment.end_rebuild(0, TimestampOffset(NO_TIMESTAMP, 0))
    assert all(os.path.exists(path) for path in segment.paths[:3])
    segment.close()
