"""Ends and times of logs, compared with the log that wrote the files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.storage.log.unified_log import UnifiedLog
from spark_jobs.kafka_log.log_bounds import LogBounds
from spark_jobs.kafka_log.log_dirs import find_replicas
from spark_jobs.kafka_log.segments import Listing, listing_of
from tests.support.disks.logs import NOW, Disk, append
from tests.support.kafka_log import (
    checked,
    files_opened,
    interfering,
    offsets,
    planned,
    write_high_watermark,
    write_recovery_point,
)


def bounds(log: UnifiedLog) -> LogBounds:
    options = checked(Path(log.dir).parent)
    (replica,) = find_replicas(options)
    return LogBounds(replica, listing(log), options)


def listing(log: UnifiedLog) -> Listing:
    return listing_of(log.dir, [path.name for path in Path(log.dir).iterdir()])


def disordered_log(tmp_path: Path, seed: int) -> UnifiedLog:
    """Many small segments; times go up and down."""
    rng = random.Random(seed)
    log = Disk(tmp_path).log({"segment.bytes": "1500", "index.interval.bytes": "100"})
    for number in range(150):
        values = [b"v" * rng.randrange(50) for _ in range(rng.randrange(1, 4))]
        append(log, *values, timestamp=NOW + number * 10 + rng.randrange(-200, 200), compression=number % 5)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("is_flushed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_times_are_found_as_by_the_broker(tmp_path: Path, seed: int, is_flushed: bool) -> None:
    log = disordered_log(tmp_path, seed)
    if is_flushed:
        write_recovery_point(tmp_path, log.segments.active.base_offset)
    ours = bounds(log)
    for timestamp in range(NOW - 300, NOW + 2000, 7):
        found = log.fetch_offset_by_timestamp(timestamp)
        assert ours.offset_for_time(timestamp, 0) == (None if found is None else found.offset), timestamp


def test_times_are_found_without_time_indexes(tmp_path: Path) -> None:
    log = disordered_log(tmp_path, 0)
    expected = {timestamp: log.fetch_offset_by_timestamp(timestamp) for timestamp in range(NOW - 100, NOW + 2000, 50)}
    for path in Path(log.dir).glob("*.*index"):
        path.unlink()
    ours = bounds(log)
    for timestamp, found in expected.items():
        assert ours.offset_for_time(timestamp, 0) == (None if found is None else found.offset), timestamp


def test_the_last_entry_of_a_time_index_may_be_missing_above_the_recovery_point(tmp_path: Path) -> None:
    """A loss of power can take it."""
    log = Disk(tmp_path).log({"index.interval.bytes": "100"})
    for part in range(5):
        append(log, b"value", timestamp=NOW + part)
    log.roll()
    append(log, b"value", timestamp=NOW)
    (index, _) = sorted(Path(log.dir).glob("*.timeindex"))
    index.write_bytes(index.read_bytes()[:-12])
    assert bounds(log).offset_for_time(NOW + 4, 0) == 4


def test_the_end_is_that_of_the_last_batch(tmp_path: Path) -> None:
    log = disordered_log(tmp_path, 1)
    assert bounds(log).end() == log.log_end_offset
    log.roll()
    assert bounds(log).end() == log.log_end_offset, "the last segment is empty"
    log.close()
    assert bounds(log).end() == log.log_end_offset


def test_a_time_range_opens_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments whose time index ends earlier are not read, those behind the range are not opened."""
    log = Disk(tmp_path).log({"index.interval.bytes": "100"})
    for number in range(20):
        for part in range(5):
            append(log, b"value", timestamp=NOW + number * 1000 + part)
        log.roll()
    write_high_watermark(tmp_path, log.log_end_offset)
    write_recovery_point(tmp_path, log.log_end_offset)
    with files_opened(monkeypatch) as names:
        found = offsets(tmp_path, startingTimestamp=NOW + 10_000, endingTimestamp=NOW + 11_000)
    assert found == [50, 51, 52, 53, 54]
    assert [int(name[:20]) for name in names] == [50, 55, 50], "a lookup for each time, and the reading"
    assert len(planned(tmp_path, startingTimestamp=NOW + 10_000, endingTimestamp=NOW + 11_000)) == 1


def test_a_range_of_offsets_opens_its_segments_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Disk(tmp_path).log()
    for _ in range(20):
        append(log, b"a", b"b")
        log.roll()
    write_high_watermark(tmp_path, log.log_end_offset)
    with files_opened(monkeypatch) as names:
        assert offsets(tmp_path, startingOffset=7, endingOffset=11) == [7, 8, 9, 10]
    assert [int(name[:20]) for name in names] == [6, 8, 10]


def test_a_file_that_is_renamed_during_a_lookup_is_found_under_its_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Disk(tmp_path).log()
    for number in range(4):
        append(log, b"x", timestamp=NOW + number)
    write_high_watermark(tmp_path, 4)
    path = Path(log.dir, f"{0:020d}.log")
    renamed = []

    def rename(what: str) -> None:
        if what == "open" and not renamed:
            renamed.append(path.rename(f"{path}.swap"))

    with interfering(monkeypatch, rename):
        assert [(task.start, task.end) for task in planned(tmp_path, endingTimestamp=NOW + 2)] == [(0, 2)]
    assert renamed


def test_a_time_after_the_last_record_is_the_end(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"a", timestamp=NOW)
    write_high_watermark(tmp_path, 1)
    assert offsets(tmp_path, startingTimestamp=NOW + 1) == []
    assert offsets(tmp_path, endingTimestamp=NOW + 1) == [0]
