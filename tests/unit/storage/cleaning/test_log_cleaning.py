"""A compaction as a whole: segments in, `.cleaned` segments out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.errors import CorruptLogError
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.cleaning.clean_job import CleanedGroup, SplitNeeded
from odradek.storage.cleaning.log_cleaning import LogCleaning, clean_log
from odradek.storage.segment.log_segment import LogSegment
from tests.support.compaction.compaction import BareLog
from tests.support.disks.logs import NOW


def test_clean_segments(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    for number in range(30):
        log.write((b"k%d" % (number % 3), b"%02d" % number))
        if number % 5 == 4:
            log.roll()
    result = log.clean()
    assert result.next_dirty_offset == 30
    assert result.groups == [CleanedGroup((0, 5, 10, 15, 20, 25), 0)]
    assert log.keyed() == {27: (b"k0", b"27"), 28: (b"k1", b"28"), 29: (b"k2", b"29")}
    stats = result.stats
    assert (stats.messages_read, stats.map_messages_read, stats.messages_written, stats.map_entries) == (30, 30, 3, 3)
    assert stats.bytes_read == stats.map_bytes_read == 10 * stats.bytes_written
    assert stats.map_utilization == 3 / 1000


def test_a_worker_process_runs_it_with_its_own_clock(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"), (b"a", b"2"))
    log.roll()
    result = clean_log(log.job(), lambda _: None)
    assert result.groups == [CleanedGroup((0,), 0)]
    assert sorted(path.name for path in tmp_path.glob("*.cleaned")) == [
        "00000000000000000000.index.cleaned",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
    ]


def test_torn_batch_is_an_error(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"))
    log.roll()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptLogError, match="may be corrupt"):
        log.run(log.job())


def test_nothing_to_clean_changes_nothing(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"1"))
    result = log.clean(now_ms=NOW)
    assert (result.next_dirty_offset, result.groups) == (0, [])


def rolled(path: Path, *pairs: tuple[bytes | None, bytes | None], **overrides: str) -> BareLog:
    """One inactive segment with a batch for each pair."""
    log = BareLog(path, overrides)
    for each in pairs:
        log.write(each)
    log.roll()
    return log


def test_large_message(tmp_path: Path) -> None:
    """A batch that is larger than the buffers, among small ones."""
    big = bytes(range(256)) * 400
    log = rolled(tmp_path, (b"a", b"1"), (b"b", big), (b"a", b"2"), (b"c", big))
    log.clean(io_buffer_bytes=1)
    assert log.keyed() == {1: (b"b", big), 2: (b"a", b"2"), 3: (b"c", big)}


@pytest.mark.parametrize("length", [2**31 - 1, 200, 13, -1])
def test_corrupt_message_size_larger_than_bytes_available(tmp_path: Path, length: int) -> None:
    log = rolled(tmp_path, (b"a", b"1"))
    path = tmp_path / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[8:12] = length.to_bytes(4, "big", signed=True)
    path.write_bytes(data)
    with pytest.raises(CorruptLogError):
        log.run(log.job())


def test_cleaning_with_deletes(tmp_path: Path) -> None:
    log = BareLog(tmp_path, {"delete.retention.ms": "1000"})
    for key in range(10):
        log.write((b"%d" % key, b"v"))
    for key in range(0, 10, 2):
        log.write((b"%d" % key, None))
    log.roll()
    log.clean()
    kept = {key: (b"%d" % key, b"v") for key in range(1, 10, 2)}
    assert log.keyed() == kept | {10 + n: (b"%d" % (2 * n), None) for n in range(5)}
    for now_ms, count in ((NOW + 999, 5), (NOW + 1000, 0)):
        log.first_dirty_offset = 0
        log.clean(now_ms=now_ms)
        assert len(log.keyed()) == 5 + count


def test_clean_tombstone(tmp_path: Path) -> None:
    """The timestamp of a tombstone does not matter: its retention begins at its first compaction."""
    log = BareLog(tmp_path)
    log.write((b"0", b"0"), timestamp=NOW + 100_000_000)
    log.roll()
    log.clean()
    log.write((b"0", None), timestamp=NOW - 100_000_000)
    log.roll()
    log.clean()
    assert log.keyed() == {1: (b"0", None)}
    log.write((b"1", b"1"))
    log.roll()
    log.clean()
    assert log.keyed() == {1: (b"0", None), 2: (b"1", b"1")}


def test_cleaner_retains_producer_last_sequence(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"0", b"0"))
    log.write((b"0", b"1"), producer_id=1)
    log.write((b"0", b"2"), producer_id=2)
    log.write((b"0", b"3"))
    log.roll()
    log.clean()
    assert [(b.last_offset, b.producer_id, b.last_sequence, b.record_count) for b in log.batches()] == [
        (1, 1, 0, 0),
        (2, 2, 0, 0),
        (3, -1, -1, 1),
    ]


def test_partial_segment_clean(tmp_path: Path) -> None:
    """The map has room for one key."""
    log = rolled(tmp_path, *((b"%d" % (n % 2), b"v") for n in range(5)))
    for first_dirty, left in ((2, [1, 2, 3, 4]), (3, [2, 3, 4]), (4, [3, 4])):
        log.first_dirty_offset = first_dirty
        result = log.clean(map_slots=2, load_factor=0.75)
        assert list(log.keyed()) == left
        assert result.next_dirty_offset == first_dirty + 1


def test_cleaning_with_uncleanable_section(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    for _ in range(4):
        for number in range(6):
            log.write((b"%d" % (number % 3), b"v"))
        log.roll()
    untouched = {base: log.data(base) for base in (12, 18)}
    result = log.clean(log.job(end=13))
    assert result.next_dirty_offset == 12
    assert list(log.keyed())[:4] == [9, 10, 11, 12]
    assert {base: log.data(base) for base in (12, 18)} == untouched


def test_cleaning_with_unkeyed_messages(tmp_path: Path) -> None:
    log = rolled(tmp_path, (None, b"0"), (b"1", b"1"), (None, b"2"))
    result = log.clean()
    assert log.keyed() == {1: (b"1", b"1")}
    assert result.stats.invalid_messages_read == 2


def test_cleaning_beyond_missing_offsets(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    for base in (15, 30):
        log.write(*((b"%d" % n, b"v") for n in range(10)))
        log.next_offset = base
        log.roll()
    assert log.clean().next_dirty_offset == 30
    assert len(log.keyed()) == 10


def test_segment_with_offset_overflow(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"v"))
    log.roll()
    log.write((b"b", b"v"))
    log.roll()
    log.write((b"c", b"v"))
    log.next_offset = 2**31 + 2
    log._segment = None
    with (tmp_path / "00000000000000000002.log").open("ab") as file:
        file.write(build_batch([SimpleRecord(NOW, b"d", b"v")], base_offset=2**31 + 2))
    log.next_offset = 2**31 + 3
    log.roll()
    result = log.run(log.job())
    assert (result.split, result.groups) == (SplitNeeded(2), [])


def test_offsets_as_far_apart_as_a_segment_allows(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((b"a", b"v"))
    log.next_offset = 2**31 - 1
    log.write((b"b", b"v"))
    log.roll()
    result = log.clean()
    assert (result.split, list(log.keyed())) == (None, [0, 2**31 - 1])


def test_empty_output_takes_the_place_of_its_sources(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    log.write((None, b"v"))
    log.roll()
    log.clean()
    assert log.bases == [0, 1]
    assert log.data(0) == b""


def test_io_rate_is_held_down(tmp_path: Path) -> None:
    log = rolled(tmp_path, *((b"%d" % n, bytes(1000)) for n in range(10)))
    run = LogCleaning(log.job(bytes_per_second=1000.0), log.disk.environment, log._sleep)
    log.disk.advance(301)  # longer than the interval between two checks of the rate
    run.run()
    assert sum(log.slept_ms) > 1000 - 301


def test_output_is_as_old_as_its_last_source(tmp_path: Path) -> None:
    log = rolled(tmp_path, (b"a", b"1"))
    log.write((b"b", b"1"))
    log.roll()
    for base, age_s in ((0, 5000), (1, 3000)):
        os.utime(tmp_path / f"{base:020d}.log", (NOW // 1000 - age_s, NOW // 1000 - age_s))
    log.clean()
    times = {path.stat().st_mtime for path in tmp_path.glob("00000000000000000000.*")}
    assert times == {NOW // 1000 - 3000}


def test_size_trimmed_for_preallocated_and_compacted_topic(tmp_path: Path) -> None:
    log = rolled(tmp_path, (b"a", b"1"), (b"a", b"2"), preallocate="true", **{"segment.bytes": "100000"})
    log.clean()
    assert len(log.data(0)) == 70


def test_indexes_of_the_output_find_its_batches(tmp_path: Path) -> None:
    log = BareLog(tmp_path)
    for number in range(60):
        log.write((b"again", bytes(300)), (b"%d" % number, bytes(500)), timestamp=NOW + 10 * number)
        if number % 20 == 19:
            log.roll()
    log.clean()
    segment = LogSegment.open(str(tmp_path), 0, log.config, log.disk.environment)
    found = list(segment.records.positions())
    assert len(found) == 60
    entries = [segment.offset_index.entry(slot) for slot in range(segment.offset_index.entries)]
    by_position = {where.position: where.last_offset for where in found}
    assert len(entries) >= len(log.data(0)) // 5000
    assert all(by_position[entry.position] == entry.offset for entry in entries)
    assert segment.time_index.last_entry == (NOW + 10 * 59 + 1, 119)
    segment.discard()


def test_legacy_tombstones_go_with_the_age_of_the_last_clean_segment(tmp_path: Path) -> None:
    log = BareLog(tmp_path, {"delete.retention.ms": "10000"})
    ages_s = {}
    for age_s in (30, 15, 5, 0):
        ages_s[log.next_offset] = age_s
        log.write_legacy((b"%d" % age_s, None))
        log.roll()
    for base, age_s in ages_s.items():
        os.utime(tmp_path / f"{base:020d}.log", (NOW // 1000 - age_s, NOW // 1000 - age_s))
    log.first_dirty_offset = 3  # the segment of 5 s ago is the last clean one: tombstones older than 15 s are removed
    log.clean()
    assert [key for key, _ in log.keyed().values()] == [b"5", b"0"]


def test_half_written_output_of_an_earlier_attempt_is_replaced(tmp_path: Path) -> None:
    log = rolled(tmp_path, (b"a", b"1"), (b"a", b"2"))
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        (tmp_path / f"{0:020d}{suffix}.cleaned").write_bytes(b"x" * 1000)
    log.clean()
    assert len(log.data(0)) == 70
    assert log.aborted() == []
