"""Reading a log: by offset, bounded by isolation, and by time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, Disk, append, batch, read_bytes

LOG_END, UNCOMMITTED = FetchIsolation.LOG_END, FetchIsolation.HIGH_WATERMARK


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# -- reading -----------------------------------------------------------


def test_read_starts_at_the_batch_that_holds_the_offset(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    found = log.read(2, 10_000, LOG_END, False)
    assert found.fetch_offset_metadata.message_offset == 2
    assert RecordBatch(memoryview(read_bytes(found))).base_offset == 1


def test_read_is_bounded_by_isolation(disk: Disk) -> None:
    log = disk.log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    log.update_high_watermark(2)
    size = log.size // 3
    assert log.read(0, 10_000, LOG_END, True).size_in_bytes == 3 * size
    assert log.read(0, 10_000, UNCOMMITTED, True).size_in_bytes == 2 * size
    assert log.read(2, 10_000, UNCOMMITTED, True).size_in_bytes == 0
    assert log.read(3, 10_000, UNCOMMITTED, True).size_in_bytes == 0


@pytest.mark.parametrize("offset", [-1, 4])
def test_read_outside_the_log_is_refused(disk: Disk, offset: int) -> None:
    log = disk.log()
    append(log, b"a", b"b", b"c")
    with pytest.raises(KafkaError) as error:
        log.read(offset, 100, LOG_END, True)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_first_batch_larger_than_the_limit_is_returned_whole_only_if_asked(disk: Disk) -> None:
    log = disk.log()
    append(log, b"x" * 500)
    append(log, b"y")
    whole = log.read(0, 10, LOG_END, True)
    assert not whole.first_entry_incomplete
    assert RecordBatch(memoryview(read_bytes(whole))).is_valid()
    assert whole.size_in_bytes == len(batch(b"x" * 500))
    cut = log.read(0, 10, LOG_END, False)
    assert cut.first_entry_incomplete
    assert cut.size_in_bytes == 10


def test_read_goes_on_to_the_next_segment_where_offsets_are_missing(disk: Disk) -> None:
    log = disk.log()
    log.append_as_follower(batch(b"a", base_offset=0, epoch=0))
    log.roll()
    log.append_as_follower(batch(b"b", base_offset=10, epoch=0))
    found = log.read(5, 1000, LOG_END, True)
    assert RecordBatch(memoryview(read_bytes(found))).base_offset == 10


def test_region_stays_readable_after_its_segment_was_removed(disk: Disk) -> None:
    log = disk.log({"file.delete.delay.ms": "1000"})
    append(log, b"a")
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    region = log.read(0, 1000, LOG_END, True).records
    region.retain()  # type: ignore[union-attr]
    expected = region.read()  # type: ignore[union-attr]
    log.maybe_increment_log_start_offset(1, "test")
    assert log.delete_old_segments() == 1
    disk.advance(1001)
    assert os.pread(region.fileno(), region.size_in_bytes, region.position) == expected  # type: ignore[union-attr]
    region.release()  # type: ignore[union-attr]


# -- offsets by time -----------------------------------------------------------


def test_special_timestamps(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", epoch=2, timestamp=NOW + 50)
    append(log, b"b", epoch=2, timestamp=NOW + 90)
    append(log, b"c", epoch=2, timestamp=NOW + 10)
    log.update_high_watermark(2)
    assert tuple(log.fetch_offset_by_timestamp(-1)) == (-1, 3, 2)  # type: ignore[arg-type]
    assert tuple(log.fetch_offset_by_timestamp(-1, UNCOMMITTED)) == (-1, 2, 2)  # type: ignore[arg-type]
    assert tuple(log.fetch_offset_by_timestamp(-2)) == (-1, 0, 2)  # type: ignore[arg-type]
    assert tuple(log.fetch_offset_by_timestamp(-3)) == (NOW + 90, 1, 2)  # type: ignore[arg-type]
    assert tuple(log.fetch_offset_by_timestamp(-4)) == (-1, 0, 2)  # type: ignore[arg-type]
    assert tuple(log.fetch_offset_by_timestamp(-5)) == (-1, -1, -1)  # type: ignore[arg-type]
    with pytest.raises(KafkaError) as error:
        log.fetch_offset_by_timestamp(-6)
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_offset_by_time_is_that_of_the_record_not_of_the_batch(disk: Disk) -> None:
    log = disk.log()
    append(log, b"a", b"b", b"c", timestamp=NOW)
    assert tuple(log.fetch_offset_by_timestamp(NOW + 1)) == (NOW + 1, 1, 0)  # type: ignore[arg-type]
    assert log.fetch_offset_by_timestamp(NOW + 3) is None
    log.update_high_watermark(1)
    assert log.fetch_offset_by_timestamp(NOW + 1, UNCOMMITTED) is None, "beyond what the reader may see"


def test_offset_by_time_on_an_empty_log(disk: Disk) -> None:
    log = disk.log()
    assert log.fetch_offset_by_timestamp(0) is None
    assert log.fetch_offset_by_timestamp(-3) is None
