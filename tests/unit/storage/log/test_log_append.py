"""Appending: a leader assigns the offsets, a follower keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.storage.append_info import UnexpectedAppendOffsetError
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, DeferredIoPool, Disk, append, batch, read_all, read_bytes

LOG_END = FetchIsolation.LOG_END


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# -- appending -----------------------------------------------------------


def test_append_assigns_offsets_and_leader_epoch(disk: Disk) -> None:
    log = disk.log()
    first = log.append_as_leader(batch(b"a", b"b"), 3)
    second = log.append_as_leader(batch(b"c"), 3)
    assert (first.first_offset, first.last_offset, second.first_offset) == (0, 1, 2)
    assert log.log_end_offset == 3
    assert log.latest_epoch == 3
    stored = RecordBatch(memoryview(read_bytes(log.read(2, 1, LOG_END, True))))
    assert (stored.base_offset, stored.partition_leader_epoch) == (2, 3)
    assert stored.is_valid()


def test_a_torn_batch_at_the_end_of_a_request_is_left_out(disk: Disk) -> None:
    log = disk.log()
    data = bytes(batch(b"a")) + bytes(batch(b"b"))[:-1]
    assert log.append_as_leader(memoryview(data), 0).last_offset == 0
    assert log.append_as_leader(batch(b"c")[:-1], 0).first_offset == -1
    assert log.log_end_offset == 1


def test_append_time_is_written_into_the_batch_but_not_into_the_records(disk: Disk) -> None:
    log = disk.log({"message.timestamp.type": "LogAppendTime"})
    info = log.append_as_leader(batch(b"a", timestamp=5), 0)
    assert info.log_append_time == info.max_timestamp == NOW
    stored = RecordBatch(memoryview(read_bytes(log.read(0, 1, LOG_END, True))))
    assert stored.is_valid()
    assert (stored.timestamp_type, stored.max_timestamp, stored.base_timestamp) == (1, NOW, 5)


def test_batch_larger_than_a_segment_is_refused(disk: Disk) -> None:
    log = disk.log({"segment.bytes": "100"})
    with pytest.raises(KafkaError) as error:
        append(log, b"x" * 100)
    assert error.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_flush_messages_asks_for_a_flush_and_says_so(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    disk = Disk(tmp_path, io_pool=pool)
    log = disk.log({"flush.messages": "2"})
    pool.run_all()
    assert not log.append_as_leader(batch(b"a"), 0).flush_required
    info = log.append_as_leader(batch(b"b"), 0)
    assert info.flush_required
    flushed: list[OSError | None] = []
    log.when_flushed(info.last_offset + 1, flushed.append)
    assert not flushed
    pool.run_all()
    assert flushed == [None]
    assert log.recovery_point == 2


def test_duplicate_of_a_batch_that_is_not_on_the_disk_yet_asks_for_the_flush_too(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    log = Disk(tmp_path, io_pool=pool).log({"flush.messages": "2"})
    pool.run_all()
    first = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    second = batch(b"b", producer_id=7, producer_epoch=0, base_sequence=1)
    infos = [log.append_as_leader(records, 0) for records in (first, first, second, second)]
    assert [info.duplicate for info in infos] == [False, True, False, True]
    assert [info.flush_required for info in infos] == [False, False, True, True]
    pool.run_all()
    info = log.append_as_leader(second, 0)
    assert (info.duplicate, info.flush_required) == (True, False)


# -- the follower -----------------------------------------------------------


def test_follower_keeps_offsets_and_epochs_of_the_leader(disk: Disk) -> None:
    log = disk.log()
    data = bytes(batch(b"a", b"b", base_offset=7, epoch=2)) + bytes(batch(b"c", base_offset=20, epoch=4))
    info = log.append_as_follower(memoryview(data))
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (7, 20, 21)
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(2, 7), (4, 20)]
    assert [record.offset for record in read_all(log)] == [7, 8, 20]


def test_follower_refuses_offsets_below_its_end(disk: Disk) -> None:
    log = disk.log()
    log.append_as_follower(batch(b"a", b"b", base_offset=0, epoch=0))
    with pytest.raises(UnexpectedAppendOffsetError) as error:
        log.append_as_follower(batch(b"a", b"b", base_offset=1, epoch=0))
    assert (error.value.first_offset, error.value.last_offset) == (1, 2)


def test_follower_refuses_offsets_out_of_order(disk: Disk) -> None:
    log = disk.log()
    data = bytes(batch(b"a", base_offset=5, epoch=0)) + bytes(batch(b"a", base_offset=4, epoch=0))
    with pytest.raises(KafkaError, match="Out of order offsets"):
        log.append_as_follower(memoryview(data))
    assert log.log_end_offset == 0


def test_follower_accepts_batches_above_the_size_limit(disk: Disk) -> None:
    log = disk.log({"max.message.bytes": "80"})
    with pytest.raises(KafkaError) as error:
        append(log, b"x" * 100)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    log.append_as_follower(batch(b"x" * 100, epoch=0))
    assert log.log_end_offset == 1


def test_each_replicated_batch_is_indexed_by_itself(disk: Disk) -> None:
    log = disk.log({"index.interval.bytes": "1"})
    data = b"".join(bytes(batch(b"x", base_offset=offset, epoch=0)) for offset in range(5))
    log.append_as_follower(memoryview(data))
    index = log.segments.active.offset_index
    size = len(data) // 5
    assert [tuple(index.entry(slot)) for slot in range(index.entries)] == [(n, n * size) for n in range(1, 5)]


def test_a_new_index_interval_is_for_new_segments(disk: Disk) -> None:
    log = disk.log({"index.interval.bytes": "4096"})
    log.update_config(replace(log.config, index_interval_bytes=0))
    append(log, b"a")
    append(log, b"b")
    assert log.segments.active.offset_index.entries == 0
    log.roll()
    append(log, b"c")
    append(log, b"d")
    assert log.segments.active.offset_index.entries == 1
