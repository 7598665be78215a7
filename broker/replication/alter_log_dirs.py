"""Fills future logs: copies a partition's log to another log directory while it is written and read.

Each moving partition has a `LogMove`. It first truncates the future log to the part that it has in common with the
current one (by leader epochs, as a follower does). Then it reads the current log chunk by chunk, appends to the future
one, and swaps them when both end at the same offset. `num.replica.alter.log.dirs.threads` partitions move at a time, in
the order of their names. A move that has to wait after an error gives its turn to the next. While the quota is
exceeded, each move keeps its turn, and no other begins: it would have to wait, too.

A chunk is read in the I/O pool, unless it is in memory, and appended in slices, with other work between them. Records
that were appended to the current log meanwhile are in memory. So the last step reads, appends, compares and swaps in
one call, during which nothing can be appended to the current log: a partition under load catches up, too.

Records that are on the disk in the current log must be on the disk in the future one before the swap. With
`flush.messages` the flushed offset moves on with each append, faster than a slow disk can follow. So while a move waits
for the slower disk, flushes of the current log are held back; the future log answers the requests that wait for them.

Invariants: at most one step of a move is in progress; a step of a move that was removed or replaced does nothing; what
was flushed in the current log is flushed in the future one before they are swapped.

Kafka: ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread, LocalLeaderEndPoint.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.machine.hot_reads import read_hot
from odradek.broker.replication.copied_records import PASSING_ERRORS, SLICE_BYTES, append_copied, slices
from odradek.broker.replication.truncation_offset import truncation_offset
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.disk.disk_space import LogDirFullError
from odradek.storage.offsets import EpochEndOffset
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.broker.fetch.replication_quota import ReplicationQuota
    from odradek.broker.partition.partition import Partition
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_manager import LogManager
    from odradek.storage.segment.flusher import LogFlusher
    from odradek.timer.task import TimerTask

SLICE_INTERVAL_MS: Final = 1

HOLD_MAX_MS: Final = 5_000
"""Limit of the time that producers wait for the disk to which a log is about to move."""

log = logging.getLogger(__name__)


class MoveSettings(NamedTuple):
    """The broker settings of moves, with Kafka's defaults."""

    quota: ReplicationQuota
    """`replica.alter.log.dirs.io.max.bytes.per.second`"""
    threads: int
    """`num.replica.alter.log.dirs.threads`; Kafka's default is the number of log directories."""
    fetch_max_bytes: int = 1024 * 1024
    fetch_backoff_ms: int = 1_000


@dataclass(slots=True, eq=False)
class LogMove:
    """The state of one partition's move. A restarted move is a new object; steps of the old one do nothing."""

    partition: Partition
    leader_epoch: int
    initial_offset: int
    """The future log is truncated to it if leader epochs give no offset."""
    is_truncating: bool = True
    ready_at_ms: int = 0
    held: LogFlusher | None = None
    """The flusher of the current log, held back while the future log is flushed."""
    hold_end: TimerTask | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return self.partition.topic_partition


class ReplicaAlterLogDirsManager:
    """All moves of a broker."""

    def __init__(
        self,
        log_manager: LogManager,
        settings: MoveSettings,
        *,
        on_progress: Callable[[TopicPartition], None],
        on_moved: Callable[[TopicPartition], None],
    ) -> None:
        """`on_progress`: a future log has followed a change of the log start; `on_moved`: it has replaced the log."""
        self._log_manager = log_manager
        self._environment = log_manager.environment
        self._quota = settings.quota
        self._settings = settings
        self._on_progress = on_progress
        self._on_moved = on_moved
        self._moves: dict[TopicPartition, LogMove] = {}
        self.failed: set[TopicPartition] = set()
        """Partitions whose moves were given up, until they begin again or the partition is stopped."""
        self._running: set[LogMove] = set()
        self._ready: list[TopicPartition] = []
        """Moves that wait for their turn, in the order of names."""
        self._delayed: dict[TopicPartition, LogMove] = {}
        """Moves that are not ready yet, in the order of `ready_at_ms`: all are delayed by the same time."""
        self._wake_up: TimerTask | None = None

    def add(self, partition: Partition) -> None:
        """Begin to fill the partition's future log, or restart under a new leader epoch."""
        future = partition.future_log
        move = self._moves.get(partition.topic_partition)
        if future is None or (move is not None and move.leader_epoch == partition.leader_epoch):
            return
        self._forget(partition.topic_partition)
        log.info("Moving %s to %s from offset %d on", partition.topic_partition, future.dir, future.log_end_offset)
        self._begin(LogMove(partition, partition.leader_epoch, future.high_watermark))

    def _begin(self, move: LogMove) -> None:
        self._moves[move.topic_partition] = move
        insort(self._ready, move.topic_partition)
        self._fill()

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop to fill the partition's future log, which stays as it is."""
        if self._forget(topic_partition):
            self._fill()

    def _forget(self, topic_partition: TopicPartition) -> bool:
        """Remove the move, which may leave room for another; whether there was one."""
        self.failed.discard(topic_partition)
        move = self._moves.pop(topic_partition, None)
        if move is None:
            return False
        self._let_flush(move)
        if move in self._running:
            self._running.remove(move)
        elif self._delayed.pop(topic_partition, None) is None:
            del self._ready[bisect_left(self._ready, topic_partition)]
        return True

    def mark_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """The current log was truncated to `offset`: truncate the future log as well before the move continues."""
        move = self._moves.get(topic_partition)
        if move is not None:
            self._forget(topic_partition)
            initial_offset = min(offset, move.initial_offset) if move.is_truncating else offset
            self._begin(LogMove(move.partition, move.leader_epoch, initial_offset))

    def shutdown(self) -> None:
        for move in self._moves.values():
            self._let_flush(move)
        self._moves.clear()
        self._running.clear()
        self._ready.clear()
        self._delayed.clear()

    # The order of moves

    def _fill(self) -> None:
        """Start the next moves that are ready, if there is room; if there is room left, schedule a wake-up.

        Each change of a move calls this: it must not look at all of them, of which there may be thousands.
        """
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        now_ms = self._environment.clock.monotonic_ms()
        while self._delayed and (first := next(iter(self._delayed.values()))).ready_at_ms <= now_ms:
            del self._delayed[first.topic_partition]
            insort(self._ready, first.topic_partition)
        while self._ready and len(self._running) < self._settings.threads:
            move = self._moves[self._ready.pop(0)]
            self._running.add(move)
            self._continue(move, 0)
        if self._delayed and len(self._running) < self._settings.threads:
            delay_ms = next(iter(self._delayed.values())).ready_at_ms - now_ms
            self._wake_up = self._environment.timer.schedule(delay_ms, self._fill)

    def _continue(self, move: LogMove, delay_ms: int) -> None:
        self._environment.timer.schedule(delay_ms, lambda: self._step(move))

    def _delay(self, move: LogMove) -> None:
        """Stop this move for `fetch_backoff_ms`; others may run."""
        if not self._is_current(move):
            return
        self._let_flush(move)
        move.ready_at_ms = self._environment.clock.monotonic_ms() + self._settings.fetch_backoff_ms
        self._running.remove(move)
        self._delayed[move.topic_partition] = move
        self._fill()

    def _is_current(self, move: LogMove) -> bool:
        return self._moves.get(move.topic_partition) is move

    def _step(self, move: LogMove) -> None:
        """Truncate, or read the next chunk. Then the next step is scheduled or delayed, or the move ends."""
        if not self._is_current(move):
            return
        current, future = move.partition.log, move.partition.future_log
        if current is None or future is None:
            self.remove(move.topic_partition)
            return
        try:
            if move.is_truncating:
                self._truncate(move, future)
            elif self._quota.is_exceeded and move.held is None:  # with held flushes producers wait, and little is left
                self._continue(move, self._settings.fetch_backoff_ms)
            else:
                self._read(move, current, future)
        except KafkaError as error:
            self._read_failed(move, error)

    def _read_failed(self, move: LogMove, error: KafkaError) -> None:
        if not self._is_current(move):
            return  # a directory has failed, and the move with it
        if error.code == ErrorCode.FENCED_LEADER_EPOCH:
            self._give_up(move, error)  # the LeaderAndIsr with the new epoch starts it again
            return
        log.info("The move of %s is tried again later: %s", move.topic_partition, error.message)
        self._delay(move)

    def _give_up(self, move: LogMove, error: KafkaError) -> None:
        if self._is_current(move):
            log.error(
                "The move of %s failed; the next LeaderAndIsr or AlterReplicaLogDirs starts it again: %s",
                move.topic_partition,
                error.message,
            )
            self.remove(move.topic_partition)
            self.failed.add(move.topic_partition)

    def lags(self) -> Iterator[int]:
        """How many records each future log lacks."""
        for move in list(self._moves.values()):
            current, future = move.partition.log, move.partition.future_log
            if current is not None and future is not None:
                yield max(0, current.log_end_offset - future.log_end_offset)

    @property
    def bytes_per_second(self) -> float:
        """What all moves copied."""
        return self._quota.bytes_per_second

    # Truncation

    def _truncate(self, move: LogMove, future: UnifiedLog) -> None:
        offset, is_complete = move.initial_offset, True
        if future.latest_epoch != NO_PARTITION_LEADER_EPOCH:
            answer = move.partition.last_offset_for_leader_epoch(move.leader_epoch, future.latest_epoch, False)
            offset, is_complete = truncation_offset(
                EpochEndOffset(*answer),
                initial_offset=move.initial_offset,
                log_end_offset=future.log_end_offset,
                end_offset_for_epoch=future.end_offset_for_epoch,
            )

        def cut() -> None:
            self._log_manager.truncate_to({move.topic_partition: offset}, is_future=True)
            move.initial_offset, move.is_truncating = offset, not is_complete

        self._when_cuttable(move, future, offset, cut)

    def _when_cuttable(self, move: LogMove, future: UnifiedLog, offset: int, cut: Callable[[], None]) -> None:
        """Truncate the future log when it may be truncated to `offset`. The move continues when that is on the disk:
        otherwise truncated records could come back behind new ones after a loss of power.
        """
        if offset >= future.log_end_offset:  # nothing is cut off
            cut()
            self._continue(move, 0)
            return

        def cuttable(error: OSError | None) -> None:
            if not self._is_current(move) or move.partition.future_log is not future:
                return
            try:
                if error is None:
                    cut()
                    future.log_dir.sync_queue.when_durable(durable)
                else:
                    log.info("Truncation of the future log of %s is tried later: %s", move.topic_partition, error)
                    self._delay(move)
            except KafkaError as failure:
                self._read_failed(move, failure)

        def durable(error: OSError | None) -> None:
            if self._is_current(move):
                self._continue(move, 0)

        self._log_manager.when_cuttable(future, offset, cuttable)

    def _reset(self, move: LogMove, current: UnifiedLog, future: UnifiedLog) -> None:
        """The current log ends before the future one (truncate), or starts behind its end (restart at its start)."""
        if current.log_end_offset < future.log_end_offset:
            offset = current.log_end_offset
            self._when_cuttable(
                move,
                future,
                offset,
                lambda: self._log_manager.truncate_to({move.topic_partition: offset}, is_future=True),
            )
        elif current.log_start_offset > future.log_end_offset:
            start = current.log_start_offset
            self._when_cuttable(move, future, future.segments.first.base_offset, lambda: self._begin_at(move, start))
        else:
            self._delay(move)

    def _begin_at(self, move: LogMove, offset: int) -> None:
        self._log_manager.truncate_fully_and_start_at(move.topic_partition, offset, is_future=True)

    # Copying

    def _read(self, move: LogMove, current: UnifiedLog, future: UnifiedLog) -> None:
        try:
            region = self._next_region(move, future)
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            self._reset(move, current, future)
            return
        if not isinstance(region, FileRegion):
            self._copy(move, current, future, deque())
            return
        hot = read_hot(region) if region.size_in_bytes <= SLICE_BYTES else None
        if hot is not None:
            self._copy(move, current, future, _parts(hot, future))
            return

        def done(result: bytes | OSError) -> None:
            region.release()
            if not self._is_current(move):
                return
            if isinstance(result, OSError):
                current.log_dir.fail(f"Error while reading {current.dir}", result)
                return
            self._copy(move, current, future, _parts(result, future))

        region.hold()
        fd, size, position = region.fileno(), region.size_in_bytes, region.position
        self._environment.io_pool.submit(lambda: os.pread(fd, size, position), done)

    def _next_region(self, move: LogMove, future: UnifiedLog) -> FileRegion | memoryview:
        read = move.partition.read(
            fetch_offset=future.log_end_offset,
            max_bytes=self._settings.fetch_max_bytes,
            isolation=FetchIsolation.LOG_END,
            min_one_message=True,
            current_leader_epoch=move.leader_epoch,
            last_fetched_epoch=NO_PARTITION_LEADER_EPOCH,
            leader_only=False,
        )
        assert read.fetched is not None, "no diverging epoch without an epoch in the request"
        return read.fetched.records

    def _copy(self, move: LogMove, current: UnifiedLog, future: UnifiedLog, parts: deque[memoryview]) -> None:
        """Append a slice; then schedule the next slice or the next chunk, or swap the logs."""
        if not self._is_current(move):
            return
        part = parts.popleft() if parts else memoryview(b"")
        try:
            if part:
                append_copied(future, part, lambda offset: self._begin_at(move, offset))
            self._follow_watermarks(current, future)
        except KafkaError as error:
            if error.code in PASSING_ERRORS or isinstance(error, LogDirFullError):
                self._read_failed(move, error)
            else:
                self._give_up(move, error)
            return
        self._quota.record(len(part))
        if parts:
            later = self._environment.timer.schedule
            later(SLICE_INTERVAL_MS, lambda: self._copy(move, current, future, parts))
        elif current.log_end_offset == future.log_end_offset:
            self._promote(move, current, future)
        elif part:
            self._continue(move, SLICE_INTERVAL_MS)
        else:
            self._delay(move)  # the last offsets of the current log have no records: wait for the next append

    def _follow_watermarks(self, current: UnifiedLog, future: UnifiedLog) -> None:
        future.update_high_watermark(current.high_watermark)
        start = current.log_start_offset
        if start <= future.high_watermark and future.maybe_increment_log_start_offset(start, "move of the log"):
            self._on_progress(current.topic_partition)

    # The swap

    def _promote(self, move: LogMove, current: UnifiedLog, future: UnifiedLog) -> None:
        if future.recovery_point < current.recovery_point:
            self._hold_flushes(move, current)
            # Up to the end: a flush of the current log may be in progress.
            end_offset = future.log_end_offset
            future.when_flushed(end_offset, lambda failure: None if failure else self._continue(move, 0))
            return
        try:
            move.partition.replace_current_with_future()
        except KafkaError as error:
            self._give_up(move, error)
            return
        move.held = None  # its waiters have moved to the new log
        self.remove(move.topic_partition)
        self._on_moved(move.topic_partition)

    def _hold_flushes(self, move: LogMove, current: UnifiedLog) -> None:
        self._let_flush(move)
        move.held = current.flusher
        move.held.hold()
        move.hold_end = self._environment.timer.schedule(HOLD_MAX_MS, lambda: self._let_flush(move))

    def _let_flush(self, move: LogMove) -> None:
        """Resume the flushes of the current log, if this move held them back."""
        if move.hold_end is not None:
            move.hold_end.cancel()
            move.hold_end = None
        held, move.held = move.held, None
        if held is not None:
            held.resume()


def _parts(chunk: bytes, future: UnifiedLog) -> deque[memoryview]:
    return deque(slices(memoryview(chunk), min(SLICE_BYTES, future.config.segment_bytes)))
