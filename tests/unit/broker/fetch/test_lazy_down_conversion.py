"""Records for old consumers, converted while they are sent: the bytes, the pieces, and the memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.fetch import lazy_down_conversion
from odradek.broker.fetch.down_conversion import DownConverter
from odradek.broker.fetch.lazy_down_conversion import PIECE_BYTES, LazyDownConversionRecords, convert_firsts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.records.convert import convert_to_magic, overflow_batch
from odradek.storage.disk.ports import InlineIoPool, InlineWorkerPool, IoPool, WorkerError
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from tests.support.disks.logs import DeferredIoPool, Disk, batch, marker
from tests.support.disks.managed_logs import DeferredWorkers

ZSTD = 4
NONE = ErrorCode.NONE


@pytest.fixture
def log(tmp_path: Path) -> Iterator[UnifiedLog]:
    log = Disk(tmp_path).log({"max.message.bytes": "10000000"})
    yield log
    log.discard()


def lazy(
    log: UnifiedLog,
    offset: int = 0,
    *,
    max_bytes: int = 1 << 24,
    magic: int = 1,
    pool: IoPool | None = None,
    converter: DownConverter | None = None,
) -> LazyDownConversionRecords:
    region = log.read(offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True).records
    assert isinstance(region, FileRegion)
    used = converter or DownConverter(InlineWorkerPool(), lambda: 0)
    return LazyDownConversionRecords(region, magic, offset, used, pool or InlineIoPool())


def begin(records: LazyDownConversionRecords) -> ErrorCode:
    found: list[ErrorCode] = []
    convert_firsts([records], InlineIoPool(), found.extend)
    return found[0]


def sent(records: LazyDownConversionRecords) -> list[bytes]:
    slices: list[bytes | OSError] = []
    while records.remaining:
        records.next_slice(slices.append)
    return [each for each in slices if isinstance(each, bytes)]


def converted(log: UnifiedLog, magic: int = 1, first_offset: int = 0) -> bytes:
    stored = Path(log.segments.active.records.path).read_bytes()
    return b"".join(
        convert_to_magic(each, magic, first_offset).records
        for each in batches(memoryview(stored))
        if not each.is_control
    )


def test_pieces_follow_one_another_and_fill_the_size_that_was_found(log: UnifiedLog) -> None:
    for number in range(30):
        log.append_as_leader(batch(*[b"%d" % number * 500] * 100), 0)
    records = lazy(log)
    assert begin(records) == NONE
    assert records.size_in_bytes == log.size
    slices = sent(records)
    assert b"".join(slices) == converted(log)[: log.size], "bytes beyond the size are cut off"
    assert all(len(each) <= 2 * PIECE_BYTES for each in slices)
    assert len(slices) > log.size // PIECE_BYTES


def test_room_that_is_left_is_filled_with_a_message_that_never_comes(log: UnifiedLog) -> None:
    for _ in range(2):
        log.append_as_leader(batch(b"x" * 1000, key=None), 0)
    records = lazy(log)
    assert begin(records) == NONE
    left = log.size - len(converted(log))
    assert b"".join(sent(records)) == converted(log) + overflow_batch(left, PIECE_BYTES)


def test_much_room_is_filled_piece_by_piece(log: UnifiedLog) -> None:
    large = batch(b"x" * 300_000)
    log.append_as_leader(large, 0)
    log.append_as_leader(large, 0)
    records = lazy(log, max_bytes=2 * len(large) - 1)
    assert begin(records) == NONE
    first, *fillers = sent(records)
    assert [len(each) for each in fillers[:-1]] == [PIECE_BYTES] * (len(fillers) - 1)
    left = 2 * len(large) - 1 - len(first)
    for filler in fillers:
        assert filler == overflow_batch(left, PIECE_BYTES)
        left -= len(filler)
    assert left == 0


def test_first_batch_is_whole_also_when_it_grows(log: UnifiedLog) -> None:
    log.append_as_leader(batch(*[b"v"] * 10), 0)
    records = lazy(log)
    assert begin(records) == NONE
    assert records.size_in_bytes == len(converted(log)) > log.size
    assert b"".join(sent(records)) == converted(log)


def test_uncompressed_records_before_the_offset_are_left_out(log: UnifiedLog) -> None:
    log.append_as_leader(batch(*[b"v"] * 10), 0)
    log.append_as_leader(batch(*[b"v"] * 10), 0)
    records = lazy(log, 7)
    assert begin(records) == NONE
    expected = converted(log, first_offset=7)
    assert b"".join(sent(records)).startswith(expected[: log.size])


def test_only_markers_are_the_beginning_of_a_message(log: UnifiedLog) -> None:
    log.append_as_follower(marker(ControlRecordType.COMMIT, producer_id=7, epoch=0))
    records = lazy(log)
    assert begin(records) == NONE
    assert sent(records) == [overflow_batch(12, PIECE_BYTES)]


def test_a_batch_behind_markers_is_the_first(log: UnifiedLog) -> None:
    log.append_as_follower(marker(ControlRecordType.COMMIT, producer_id=7, epoch=0))
    log.append_as_leader(batch(b"v"), 0)
    records = lazy(log)
    assert begin(records) == NONE
    assert sent(records)[0] == converted(log)


def test_half_a_batch_is_nothing(log: UnifiedLog) -> None:
    log.append_as_leader(batch(b"v" * 100), 0)
    region = log.segments.active.records.region(0, 50)
    records = LazyDownConversionRecords(region, 1, 0, DownConverter(InlineWorkerPool(), lambda: 0), InlineIoPool())
    assert begin(records) == NONE
    assert records.size_in_bytes == 0


def test_zstd_first_is_refused_and_later_ends_the_answer_with_the_piece_it_is_in(log: UnifiedLog) -> None:
    log.append_as_leader(batch(b"z", compression=ZSTD), 0)
    assert begin(lazy(log)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    for value in (b"first", b"second"):
        log.append_as_leader(batch(value), 0)
    log.append_as_leader(batch(b"z", compression=ZSTD), 0)
    records = lazy(log, 1)
    assert begin(records) == NONE
    first, *rest = sent(records)
    assert [each.records() for each in batches(memoryview(first))]
    assert rest == [overflow_batch(records.size_in_bytes - len(first), PIECE_BYTES)]


def test_damage_first_is_an_error_and_later_ends_the_answer(log: UnifiedLog) -> None:
    for _ in range(2):
        log.append_as_leader(batch(b"v"), 0)
    path = Path(log.segments.active.records.path)
    content = bytearray(path.read_bytes())
    content[log.size // 2 + 11] = 3  # an impossible length
    path.write_bytes(content)
    records = lazy(log, max_bytes=1 << 20)
    assert begin(records) == NONE
    assert len(b"".join(sent(records))) == records.size_in_bytes
    content[8:12] = bytes(4)
    path.write_bytes(content)
    region = log.segments.active.records.region(0, log.size)
    broken = LazyDownConversionRecords(region, 1, 0, DownConverter(InlineWorkerPool(), lambda: 0), InlineIoPool())
    records.release()
    assert begin(broken) == ErrorCode.CORRUPT_MESSAGE
    assert log.segments.active.records.evict(), "what is not sent does not keep the file open"


def test_a_file_that_cannot_be_opened_is_an_error_of_its_partition_alone(log: UnifiedLog) -> None:
    class Unopenable(FileRegion):
        def retain(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    log.append_as_leader(batch(b"v"), 0)
    converter = DownConverter(InlineWorkerPool(), lambda: 0)
    region = Unopenable(log.segments.active.records, 0, log.size)
    found: list[ErrorCode] = []
    of_partitions = [lazy(log), LazyDownConversionRecords(region, 1, 0, converter, InlineIoPool()), lazy(log)]
    convert_firsts(of_partitions, InlineIoPool(), found.extend)
    assert found == [NONE, ErrorCode.KAFKA_STORAGE_ERROR, NONE]


def test_a_worker_that_dies_is_an_error_of_the_partition_and_later_the_end_of_it(log: UnifiedLog) -> None:
    workers = DeferredWorkers()
    converter = DownConverter(workers, lambda: 0)
    for _ in range(2):
        log.append_as_leader(batch(*[b"v" * 50] * 1001), 0)
    errors: list[ErrorCode] = []
    convert_firsts([lazy(log, converter=converter)], InlineIoPool(), errors.extend)
    workers.jobs[0].done(WorkerError("died"))
    assert errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    records = lazy(log, converter=converter)
    convert_firsts([records], InlineIoPool(), errors.extend)
    workers.jobs[1].run()
    slices: list[bytes | OSError] = []
    records.next_slice(slices.append)
    assert (len(slices), records.remaining > 0) == (1, True)
    records.next_slice(slices.append)
    left = records.remaining
    workers.jobs[2].done(WorkerError("died"))
    assert slices[1:] == [overflow_batch(left, PIECE_BYTES)]


def test_what_is_not_in_memory_is_read_in_the_pool(log: UnifiedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_down_conversion, "read_hot", lambda region: None)
    log.append_as_leader(batch(b"v" * 5000), 0)
    pool = DeferredIoPool()
    records = lazy(log, pool=pool)
    errors: list[ErrorCode] = []
    convert_firsts([records], InlineIoPool(), errors.extend)
    assert (errors, len(pool.pending)) == ([], 1)
    pool.run_all()
    assert errors == [NONE]
    assert sent(records)[0] == converted(log)


def test_a_batch_that_is_cut_off_while_it_is_read_is_nothing(log: UnifiedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_down_conversion, "read_hot", lambda region: None)
    log.append_as_leader(batch(b"x" * 10_000), 0)
    pool = DeferredIoPool()
    records = lazy(log, pool=pool)
    found: list[ErrorCode] = []
    convert_firsts([records], pool, found.extend)
    pool.run_one()
    os.truncate(log.segments.active.records.path, 10)
    pool.run_all()
    assert (found, records.size_in_bytes) == ([NONE], 0)


def test_a_disk_that_fails_is_a_storage_error_and_later_breaks_off(
    log: UnifiedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        log.append_as_leader(batch(b"v" * 100), 0)
    records, other = lazy(log), lazy(log)
    assert begin(records) == NONE

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(lazy_down_conversion, "read_hot", fail)
    assert begin(other) == ErrorCode.KAFKA_STORAGE_ERROR
    slices: list[bytes | OSError] = []
    records.next_slice(slices.append)
    assert records.remaining
    records.next_slice(slices.append)
    assert isinstance(slices[1], OSError)


def test_many_partitions_and_markers_give_others_their_turn(log: UnifiedLog) -> None:
    for _ in range(250):
        log.append_as_follower(marker(ControlRecordType.COMMIT, producer_id=7, epoch=0, base_offset=log.log_end_offset))
    log.append_as_leader(batch(b"v"), 0)
    log.append_as_leader(batch(b"w"), 0)
    pool = DeferredIoPool()
    errors: list[ErrorCode] = []
    convert_firsts([lazy(log, pool=pool)], pool, errors.extend)
    assert pool.run_all() == 2 + 1, "after a hundred markers, and after what is no small answer"
    convert_firsts([lazy(log, 251, pool=pool) for _ in range(2000)], pool, errors.extend)
    assert pool.run_all() == 20
    assert errors == [NONE] * 2001


def test_the_descriptor_is_kept_until_all_is_sent(log: UnifiedLog) -> None:
    log.append_as_leader(batch(b"v"), 0)
    records = lazy(log)
    assert begin(records) == NONE
    segment_records = log.segments.active.records
    assert not segment_records.evict()
    records.retain()
    records.release()
    assert not segment_records.evict()
    records.release()
    assert segment_records.evict()


def test_converted_records_are_counted(log: UnifiedLog) -> None:
    for compression in (0, 1):
        log.append_as_leader(batch(b"a", b"b", b"c", compression=compression), 0)
    region = log.read(0, 1 << 20, FetchIsolation.LOG_END, min_one_message=True).records
    assert isinstance(region, FileRegion)
    counts: list[tuple[int, int, int]] = []
    converter = DownConverter(InlineWorkerPool(), iter(range(0, 1000, 5)).__next__)
    records = LazyDownConversionRecords(region, 1, 1, converter, InlineIoPool(), lambda *found: counts.append(found))
    assert begin(records) == NONE
    sent(records)
    assert [found[:2] for found in counts] == [(2, 5), (3, 5)], (
        "of the first batch a record is before the offset, a compressed one is kept whole"
    )
