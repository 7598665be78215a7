from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.broker.replication import alter_log_dirs
from odradek.broker.replication.copied_records import SLICE_BATCHES, SLICE_BYTES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error
from tests.support.disks.logs import DeferredIoPool, append, batch
from tests.support.in_process.replication.moving import Moving
from tests.support.in_process.replication.replicas import TP

NONE = ErrorCode.NONE
VALUES = [b"%d" % number for number in range(10)]
COLD = b"c" * (SLICE_BYTES + 1)
"""A record that is read in the pool."""


@pytest.fixture
def pool() -> DeferredIoPool:
    return DeferredIoPool()


def led(path: Path, *values: bytes, pool: DeferredIoPool | None = None, **settings: int) -> Moving:
    moving = Moving(path, pool=pool, **settings)
    moving.lead()
    moving.append(*values)
    if pool is not None:
        pool.run_all()
    return moving


def read_ahead(moving: Moving, pool: DeferredIoPool) -> None:
    """Begin a move whose first read is in the I/O pool."""
    moving.alter(1)
    pool.run_all()
    moving.replicas.advance(1)  # cuts the future log
    moving.replicas.advance(1)


# Copying


def test_what_is_not_in_memory_is_read_in_the_pool(tmp_path: Path, pool: DeferredIoPool) -> None:
    moving = led(tmp_path, COLD, pool=pool)
    read_ahead(moving, pool)
    assert len(pool.pending) == 1
    moving.append(b"meanwhile")
    moving.settle()
    assert (moving.where(), moving.values()) == (1, [COLD, b"meanwhile"])


def test_what_the_kernel_would_wait_for_is_read_in_the_pool(
    tmp_path: Path, pool: DeferredIoPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alter_log_dirs, "read_hot", lambda region: None)
    moving = led(tmp_path, *VALUES, pool=pool)
    read_ahead(moving, pool)
    assert len(pool.pending) == 1
    moving.settle()
    assert (moving.where(), moving.values()) == (1, VALUES)


def test_a_chunk_that_ends_inside_a_batch_is_followed_by_the_next_at_once(tmp_path: Path) -> None:
    moving = led(tmp_path, *([b"x" * 1_000] * 9), fetch_max_bytes=2_500)
    moving.alter(1)
    for _ in range(10):
        moving.replicas.advance(1)
    assert moving.where() == 1


def test_slices_of_a_chunk_leave_others_their_turn(tmp_path: Path) -> None:
    moving = led(tmp_path, *([b"x"] * (SLICE_BATCHES * 2 + 1)))
    moving.alter(1)
    moving.replicas.disk.timer.advance()
    moving.replicas.disk.timer.advance()
    ends = [moving.future().log_end_offset]
    for _ in range(2):
        moving.append(b"between")
        moving.replicas.advance(1)
        ends.append(moving.future().log_end_offset)
    assert ends == [SLICE_BATCHES, SLICE_BATCHES * 2, SLICE_BATCHES * 2 + 1]
    moving.append(b"between")
    moving.replicas.advance(1)
    assert moving.where() == 1, "the last step reads, appends, compares and swaps in one"
    assert moving.log().log_end_offset == SLICE_BATCHES * 2 + 4


def test_small_segments_take_small_slices(tmp_path: Path) -> None:
    moving = Moving(tmp_path, {"segment.bytes": "300"})
    moving.lead()
    moving.append(*VALUES)
    moving.log_manager.update_topic_config("t", {"segment.bytes": "150"})
    moving.alter(1)
    moving.settle()
    assert moving.values() == VALUES
    assert len(moving.log().segments) == 5


def test_a_batch_that_no_longer_fits_a_segment_ends_the_move(tmp_path: Path) -> None:
    """As in Apache Kafka: after RECORD_LIST_TOO_LARGE the operator has to make the segments larger."""
    moving = led(tmp_path, b"x" * 1_000)
    moving.log_manager.update_topic_config("t", {"segment.bytes": "100"})
    moving.alter(1)
    moves = moving.replicas.manager.moves
    assert [*moves.lags()] == [1]
    moving.replicas.advance(1)  # cuts the future log
    moving.replicas.advance(10_000)
    assert moving.future().log_end_offset == 0
    assert ([*moves.lags()], moves.failed) == ([], {TP})
    moving.log_manager.update_topic_config("t", {})
    moving.lead(epoch=1)
    moving.settle()
    assert moving.where() == 1
    assert moves.failed == set()


def test_producers_and_epochs_are_copied(tmp_path: Path) -> None:
    moving = led(tmp_path)
    moving.replicas.append(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    moving.lead(epoch=3)
    moving.append(b"b")
    moving.alter(1)
    moving.settle()
    assert list(moving.log().active_producers()) == [7]
    assert [(entry.epoch, entry.start_offset) for entry in moving.log().state.leader_epochs.entries] == [(0, 0), (3, 1)]
    duplicate = moving.replicas.append(batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    assert [(answer.error, answer.info.first_offset) for answer in duplicate] == [(NONE, 0)]


def test_a_log_that_begins_later_is_copied_from_there(tmp_path: Path) -> None:
    moving = Moving(tmp_path, {"segment.bytes": "200"})
    moving.lead()
    moving.append(*VALUES)
    moving.log().delete_records(6)
    moving.log().delete_old_segments()
    moving.alter(1)
    moving.settle()
    assert (moving.log().log_start_offset, moving.values()) == (6, VALUES[6:])


def test_a_log_that_begins_inside_a_batch_is_copied_with_it(tmp_path: Path) -> None:
    moving = led(tmp_path)
    moving.replicas.append(batch(b"a", b"b", b"c"))
    moving.append(b"d")
    moving.log().delete_records(1)
    moving.alter(1)
    moving.settle()
    assert (moving.log().log_start_offset, moving.values()) == (1, [b"b", b"c", b"d"])
    assert moving.log().segments.first.base_offset == 0


# Agreeing


def diverged(moving: Moving, *batches: tuple[bytes, int]) -> UnifiedLog:
    """A future log with records of several epochs, as it was before a restart."""
    moving.replicas.move_bytes_per_second = -1
    moving.alter(1)
    moving.replicas.advance(1)
    future = moving.future()
    for value, epoch in batches:
        append(future, value, epoch=epoch)
    moving.replicas.move_bytes_per_second = 2**63 - 1
    return future


def test_records_of_an_epoch_the_log_does_not_have_go(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    moving.lead(epoch=1)
    moving.append(b"a", b"b")
    moving.lead(epoch=4)
    moving.append(b"c")
    diverged(moving, (b"a", 1), (b"B", 2), (b"C", 3))
    moving.lead(epoch=5)
    moving.settle()
    assert (moving.where(), moving.values()) == (1, [b"a", b"b", b"c"])


def test_a_longer_epoch_is_cut(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    moving.lead(epoch=1)
    moving.append(b"a")
    moving.lead(epoch=4)
    moving.append(b"b")
    diverged(moving, (b"a", 1), (b"B", 1), (b"C", 1))
    moving.lead(epoch=5)
    moving.settle()
    assert moving.values() == [b"a", b"b"]


def test_a_longer_log_without_another_difference_is_cut(tmp_path: Path) -> None:
    moving = led(tmp_path, b"a")
    diverged(moving, (b"a", 0), (b"B", 0))
    moving.replicas.advance(2_000)
    moving.settle()
    assert moving.values() == [b"a"]


def test_a_follower_that_cuts_its_log_has_the_future_one_cut(tmp_path: Path, pool: DeferredIoPool) -> None:
    moving = led(tmp_path, COLD, b"b", b"c", pool=pool)
    read_ahead(moving, pool)
    assert pool.pending, "a chunk is being read"
    moving.log_manager.truncate_to({TP: 1})
    moving.replicas.manager.moves.mark_for_truncation(TP, 1)
    moving.append(b"B")
    moving.settle()
    assert (moving.where(), moving.values()) == (1, [COLD, b"B"])
    moving.replicas.manager.moves.mark_for_truncation(TP, 1)
    assert moving.log().log_end_offset == 2, "nothing moves any more"


def test_a_flushed_future_log_is_cut_when_a_checkpoint_on_the_disk_promises_less(
    tmp_path: Path, pool: DeferredIoPool
) -> None:
    moving = led(tmp_path, *VALUES, pool=pool)
    moving.log().flush()
    pool.run_all()
    moving.alter(1)
    moving.replicas.advance(1)
    moving.replicas.advance(1)
    pool.run_all()
    assert moving.future().recovery_point == 10
    moving.log_manager.truncate_to({TP: 1})
    pool.run_all()
    moving.replicas.manager.moves.mark_for_truncation(TP, 1)
    moving.replicas.advance(1)
    assert moving.future().log_end_offset == 10, "its checkpoint may promise all of that"
    moving.settle()
    assert (moving.where(), moving.values()) == (1, VALUES[:1])


# Waiting


def test_the_quota_lets_one_chunk_through_and_then_waits(tmp_path: Path) -> None:
    moving = led(tmp_path, *([b"x" * 1_000] * 10), fetch_max_bytes=2_500)
    moving.replicas.move_bytes_per_second = 1_000
    moving.alter(1)
    for _ in range(5):
        moving.replicas.advance(1)
    first = moving.future().log_end_offset
    assert first == 2
    moving.replicas.advance(1_000)
    assert moving.future().log_end_offset == first
    for _ in range(20):
        moving.replicas.advance(1_000)
    assert moving.where() == 1
    assert len(moving.values()) == 10


def test_as_many_move_at_a_time_as_there_are_threads(tmp_path: Path, pool: DeferredIoPool) -> None:
    others = [TopicPartition("t", number) for number in range(4)]
    moving = Moving(tmp_path, pool=pool, threads=2)
    for other in others:
        moving.lead(other)
        moving.append(COLD, tp=other)
    pool.run_all()
    for other in others:
        assert moving.alter(1, other) == NONE
    pool.run_all()
    moving.replicas.advance(1)
    moving.replicas.advance(1)
    assert len(pool.pending) == 2, "two read, two wait"
    moving.settle()
    assert [moving.where(other) for other in others] == [1, 1, 1, 1]


def test_a_log_that_ends_in_a_gap_waits_for_the_next_record(tmp_path: Path) -> None:
    moving = led(tmp_path)
    moving.replicas.append(batch(b"a", b"b", b"c"))
    moving.log_manager.truncate_to({TP: 2})  # the whole batch is removed, but the log ends at 2
    moving.alter(1)
    for _ in range(100):
        moving.replicas.advance(1)
    assert moving.future().log_end_offset == 0
    moving.append(b"d")
    moving.replicas.advance(1_000)
    moving.settle()
    assert moving.values() == [b"d"]


def test_what_was_flushed_is_flushed_before_the_swap(tmp_path: Path, pool: DeferredIoPool) -> None:
    moving = led(tmp_path, *VALUES, pool=pool)
    moving.log().flush()
    pool.run_all()
    assert moving.log().recovery_point == 10
    moving.alter(1)
    moving.replicas.advance(1)
    moving.replicas.advance(1)
    assert moving.future().log_end_offset == 10
    assert moving.where() == 0
    pool.run_all()
    moving.replicas.advance(1)
    assert (moving.where(), moving.log().recovery_point) == (1, 10)


# Errors


def test_a_damaged_record_is_not_copied(tmp_path: Path) -> None:
    moving = led(tmp_path, b"good", b"bad")
    path = os.path.join(moving.log().dir, "00000000000000000000.log")
    content = bytearray(Path(path).read_bytes())
    content[-1] ^= 1
    Path(path).write_bytes(content)
    moving.alter(1)
    for _ in range(5):
        moving.replicas.advance(1_000)
    assert moving.future().log_end_offset == 0
    content[-1] ^= 1
    Path(path).write_bytes(content)
    moving.replicas.advance(1_000)
    moving.settle()
    assert moving.values() == [b"good", b"bad"]


def test_a_disk_that_cannot_be_read_is_offline(
    tmp_path: Path, pool: DeferredIoPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TopicPartition("t", 1)
    moving = led(tmp_path, COLD, pool=pool)
    moving.lead(other, directory=1)
    moving.append(b"x", tp=other)
    pool.run_all()
    read_ahead(moving, pool)
    assert moving.alter(2, other) == NONE

    def broken(fd: int, size: int, position: int) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", broken)
        pool.run_one()
    assert moving.replicas.manager.partitions.is_offline(TP)
    assert not moving.log_manager.is_log_dir_online(moving.dirs[0])
    assert moving.log_manager.is_log_dir_online(moving.dirs[1])
    moving.settle()
    assert moving.where(other) == 2, "it has got the turn of the move that ended"


@pytest.mark.parametrize("failure", [io_error, disk_full], ids=lambda failure: failure.__name__)
def test_a_disk_that_cannot_be_written(tmp_path: Path, failure: Callable[[], BaseException]) -> None:
    """A failed directory ends the move; a full one makes it wait."""
    fs = FaultyFileSystem(failure=failure, for_good=False, kinds=frozenset({"append"}))
    moving = Moving(tmp_path, fs=fs)
    moving.lead()
    moving.append(*VALUES)
    moving.replicas.move_bytes_per_second = -1
    moving.alter(1)
    moving.replicas.advance(1)
    moving.replicas.move_bytes_per_second = 2**63 - 1
    fs.fail_at = fs.count + 1
    moving.replicas.advance(1_000)
    is_full = failure is disk_full
    assert moving.log_manager.is_log_dir_online(moving.dirs[1]) is is_full
    assert (moving.partition().future_log is not None) is is_full
    moving.append(b"after")
    moving.log_manager.log_dirs[1].check_space()
    for _ in range(5):
        moving.replicas.advance(1_000)
    assert moving.where() == int(is_full)
    assert moving.values() == [*VALUES, b"after"]


# Everything at once

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("large"), st.integers(1, 3)),
        st.tuples(st.just("epoch"), st.just(0)),
        st.tuples(st.just("delete records"), st.integers(0, 3)),
        st.tuples(st.just("retention"), st.just(0)),
        st.tuples(st.just("time"), st.integers(1, 1_500)),
        st.tuples(st.just("disk"), st.integers(1, 3)),
        st.tuples(st.just("move"), st.integers(0, 2)),
        st.tuples(st.just("flush"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_whatever_happens_meanwhile_the_records_are_the_same(steps: list[tuple[str, int]]) -> None:
    directory = tempfile.mkdtemp()
    try:
        pool = DeferredIoPool()
        moving = Moving(Path(directory), {"segment.bytes": "600000"}, pool=pool, fetch_max_bytes=300_000)
        moving.lead()
        written: list[bytes] = []
        epoch = start = 0
        for what, count in steps:
            match what:
                case "append":
                    values = [b"%d" % (len(written) + number) for number in range(count)]
                    written += values
                    moving.append(*values)
                case "large":
                    values = [b"%d" % (len(written) + number) + COLD for number in range(count)]
                    written += values
                    moving.append(*values)
                case "epoch":
                    epoch += 1
                    moving.lead(epoch=epoch)
                case "delete records":
                    start = max(start, min(len(written), start + count))
                    moving.log().delete_records(start)
                case "retention":
                    moving.log_manager.delete_old_segments()
                case "time":
                    moving.replicas.advance(count)
                case "disk":
                    for _ in range(min(count, len(pool.pending))):
                        pool.run_one()
                case "move":
                    assert moving.alter(count) == NONE
                case "flush":
                    moving.log().flush()
        moving.settle()
        pool.run_all()
        log = moving.log()
        assert (log.log_start_offset, log.log_end_offset) == (start, len(written))
        assert moving.values() == written[start:]
        assert log.high_watermark == len(written)
        moving.log_manager.shutdown()
    finally:
        shutil.rmtree(directory)
