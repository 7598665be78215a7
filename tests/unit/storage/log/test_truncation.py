"""Truncation removes records and the state that follows from them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from odradek.protocol.records.control import ControlRecordType
from odradek.storage.append_info import AppendOrigin
from odradek.storage.log.truncation import replay_producers, when_cuttable
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.producers.producer_recovery import REPLAYED_AT_ONCE
from odradek.storage.producers.producer_state_manager import ProducerMemory
from tests.support.disks.logs import NOW, DeferredIoPool, Disk, append, marker, read_all, values_of

OVERRIDES = {"segment.bytes": "150"}


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    log = Disk(tmp_path).log(OVERRIDES)
    for number in range(8):
        append(log, b"%d" % number, epoch=number // 2, producer_id=1, producer_epoch=0, base_sequence=number)
    log.update_high_watermark(8)
    return log


@pytest.mark.parametrize("offset", range(9))
def test_everything_follows_the_end(log: UnifiedLog, offset: int) -> None:
    assert log.truncate_to(offset) == (offset < 8)
    assert values_of(read_all(log)) == [b"%d" % number for number in range(offset)]
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (offset, offset, offset)
    assert log.latest_epoch == (offset - 1) // 2 if offset else log.latest_epoch == -1
    producer = log.active_producers().get(1)
    assert (producer.last_seq if producer else -1) == offset - 1
    assert log.recovery_point <= offset
    assert all(snapshot <= offset for snapshot in log.state.producers.snapshot_offsets)


def test_negative_offsets_are_a_bug(log: UnifiedLog) -> None:
    with pytest.raises(ValueError, match="negative offset"):
        log.truncate_to(-1)


def test_truncated_log_survives_a_restart(log: UnifiedLog, tmp_path: Path) -> None:
    log.truncate_to(5)
    append(log, b"other", epoch=9)
    log.close()
    again = Disk(tmp_path).log(OVERRIDES, clean=True)
    assert values_of(read_all(again)) == [b"0", b"1", b"2", b"3", b"4", b"other"]
    assert again.latest_epoch == 9


class TestTheFileIsCutByAThread:
    """A segment of eight records is cut at 5; the I/O pool has not begun."""

    @pytest.fixture
    def pool(self) -> DeferredIoPool:
        return DeferredIoPool()

    @pytest.fixture
    def log(self, tmp_path: Path, pool: DeferredIoPool) -> UnifiedLog:
        log = Disk(tmp_path, io_pool=pool).log()
        for number in range(8):
            append(log, b"%d" % number, epoch=number // 2)
        pool.run_all()
        log.truncate_to(5)
        return log

    def size(self, log: UnifiedLog) -> int:
        return Path(log.segments.active.records.path).stat().st_size

    def test_nothing_is_durable_before_it_is_cut(self, log: UnifiedLog, pool: DeferredIoPool) -> None:
        durable: list[OSError | None] = []
        log.log_dir.sync_queue.when_durable(durable.append)
        assert (log.log_end_offset, durable) == (5, [])
        assert self.size(log) > log.segments.active.size
        pool.run_all()
        assert durable == [None]
        assert self.size(log) == log.segments.active.size

    def test_a_leader_may_append_before(self, log: UnifiedLog, tmp_path: Path, pool: DeferredIoPool) -> None:
        append(log, b"other", epoch=9)
        pool.run_all()
        log.close()
        again = Disk(tmp_path).log()
        assert values_of(read_all(again)) == [b"0", b"1", b"2", b"3", b"4", b"other"]
        assert again.latest_epoch == 9

    def test_a_kill_before_leaves_the_log_as_it_was(self, log: UnifiedLog, tmp_path: Path) -> None:
        again = Disk(tmp_path).log()
        assert values_of(read_all(again)) == [b"%d" % number for number in range(8)]
        assert (again.log_end_offset, again.latest_epoch) == (8, 3)

    def test_a_clean_stop_cuts_it(self, log: UnifiedLog, tmp_path: Path) -> None:
        log.close()
        again = Disk(tmp_path).log(clean=True)
        assert values_of(read_all(again)) == [b"0", b"1", b"2", b"3", b"4"]

    def test_a_segment_that_ends_is_cut(self, log: UnifiedLog) -> None:
        cut = log.segments.active
        log.roll()
        assert Path(cut.records.path).stat().st_size == cut.size


def test_empty_log_begins_at_the_given_offset(log: UnifiedLog) -> None:
    log.truncate_fully_and_start_at(100, 90)
    assert (log.log_start_offset, log.log_end_offset) == (90, 100)
    assert log.high_watermark == 100
    assert not log.active_producers()
    assert append(log, b"x", epoch=9) == 100
    assert log.recovery_point == 0, "the old files may still have their names"
    log.flush()
    assert log.recovery_point == 101


# Checkpointed recovery points


class Cut:
    """A log of three flushed records before a truncation to 1, and the recovery points that were checkpointed."""

    def __init__(self, path: Path) -> None:
        self.pool = DeferredIoPool()
        self.disk = Disk(path, io_pool=self.pool)
        self.log = self.disk.log()
        for value in (b"a", b"b", b"c"):
            append(self.log, value)
        self.log.flush()
        self.pool.run_all()
        self.promised: list[int] = []
        self.at: list[OSError | None] = []

    def checkpoint(self) -> None:
        self.disk.log_dir.sync_queue.write(str(self.disk.path / "checkpoint"), self._content)

    def _content(self) -> bytes:
        self.promised.append(self.log.flusher.checkpoint_offset)
        return b""

    def ask(self, offset: int) -> None:
        when_cuttable(self.log.state, offset, self.checkpoint, self._cut)

    def _cut(self, error: OSError | None) -> None:
        self.at.append(error)
        if error is None:
            self.log.truncate_to(1)


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    return Cut(tmp_path)


def test_a_log_is_truncated_after_a_lower_checkpoint_is_stored(cut: Cut) -> None:
    cut.ask(1)
    assert (cut.promised, cut.log.log_end_offset, cut.log.recovery_point) == ([1], 3, 3)
    cut.pool.run_all()
    assert (cut.at, cut.log.log_end_offset, cut.log.recovery_point) == ([None], 1, 1)


def test_no_checkpoint_before_the_truncation_is_higher(cut: Cut) -> None:
    cut.ask(1)
    append(cut.log, b"d")
    cut.log.flusher.flush_now(4)
    assert cut.log.recovery_point == 4
    cut.checkpoint()
    cut.pool.run_one()
    cut.pool.run_all()
    assert cut.promised == [1, 1]
    append(cut.log, b"other")
    cut.log.flush()
    cut.pool.run_all()
    assert cut.log.flusher.checkpoint_offset == 2


def test_a_log_without_a_higher_checkpoint_is_truncated_at_once(cut: Cut) -> None:
    append(cut.log, b"d")
    cut.ask(3)
    assert (cut.at, cut.promised) == ([None], [])


def test_a_log_whose_checkpoint_is_not_stored_is_not_cut(cut: Cut) -> None:
    cut.ask(1)
    failure = OSError("lost")
    cut.disk.log_dir.sync_queue.fail(failure)
    cut.pool.run_all()
    assert (cut.at, cut.log.log_end_offset) == ([failure], 3)
    assert cut.log.flusher.checkpoint_offset == 3


def test_the_checkpoint_offset_of_an_empty_log_is_0(cut: Cut) -> None:
    cut.log.truncate_fully_and_start_at(100)
    cut.log.flush()
    cut.pool.run_all()
    assert (cut.log.recovery_point, cut.log.flusher.checkpoint_offset) == (100, 0)
    cut.log.truncate_fully_and_start_at(98)
    append(cut.log, b"x")
    assert cut.log.flusher.checkpoint_offset <= 98


# Producers that were replayed before


def replayed(log: UnifiedLog, offset: int) -> tuple[int, ProducerMemory | None]:
    """The number of yields, and the producers."""
    replay, turns = replay_producers(log.state, offset, NOW), 0
    while True:
        try:
            next(replay)
        except StopIteration as end:
            return turns, end.value
        turns += 1


@pytest.mark.parametrize("offset", range(1, 8))
def test_replaying_before_is_the_same_as_replaying_in_the_cut(tmp_path: Path, offset: int) -> None:
    logs = []
    for name in ("before", "within"):
        log = Disk(tmp_path / name).log(OVERRIDES)
        transaction = {"producer_id": 2, "producer_epoch": 3, "is_transactional": True}
        append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        append(log, b"b", base_sequence=0, **transaction)
        append(log, b"c", base_sequence=1, **transaction)
        kind = ControlRecordType.ABORT
        log.append_as_leader(marker(kind, producer_id=2, producer_epoch=3), 0, origin=AppendOrigin.COORDINATOR)
        append(log, b"d", producer_id=1, producer_epoch=0, base_sequence=1)
        append(log, b"e", base_sequence=2, **transaction)
        append(log, b"f", b"g", producer_id=3, producer_epoch=0, base_sequence=0)
        log.update_high_watermark(2)
        logs.append(log)
    before, within = logs
    snapshots = before.state.producers.snapshot_offsets
    _, producers = replayed(before, offset)
    assert before.state.producers.snapshot_offsets == snapshots, "nothing is changed"
    before.truncate_to(offset, producers)
    within.truncate_to(offset)
    assert pickle.dumps(before.state.producers.memory()) == pickle.dumps(within.state.producers.memory())
    assert before.state.producers.snapshot_offsets == within.state.producers.snapshot_offsets
    assert before.last_stable_offset == within.last_stable_offset


def test_a_long_replay_gives_others_their_turn(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    for number in range(2 * REPLAYED_AT_ONCE + 1):
        append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=number)
    turns, producers = replayed(log, 2 * REPLAYED_AT_ONCE)
    assert turns == 2
    assert producers is not None
    assert producers.producers[1].last_seq == 2 * REPLAYED_AT_ONCE - 1


@pytest.mark.parametrize("offset", [0, 8, 9])
def test_where_nothing_is_cut_or_left_nothing_is_replayed(log: UnifiedLog, offset: int) -> None:
    assert replayed(log, offset) == (0, None)


def test_without_producers_nothing_is_replayed(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"a")
    append(log, b"b")
    assert replayed(log, 1) == (0, None)
