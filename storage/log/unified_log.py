"""The log of one replica: a `LocalLog` with producer state, leader epochs and watermarks.

The parts are in its `LogState`. Operations that change several parts are functions on that, each in its own module.

An append is one synchronous call: this module validates and assigns offsets; `log_append` checks the producer, writes
and updates the state. A read returns a region of a file, bounded by the reader's isolation.

Invariants: an offset is assigned once; state in memory changes only after the write it describes; after an I/O error
the whole directory is offline and every call raises KAFKA_STORAGE_ERROR; an append or roll that finds no space raises
the same, but the directory stays online. Nothing here calls fsync: flushes go to the flusher, small files to the sync
queue of the directory.

Kafka: UnifiedLog.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAGIC_V2
from odradek.storage import log_files
from odradek.storage.append_info import AppendOrigin, LogAppendInfo
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.disk_space import LogDirFullError
from odradek.storage.log.log_append import append_replicated, append_validated
from odradek.storage.log.log_start import delete_records, maybe_increment_log_start_offset
from odradek.storage.log.log_state import LogState
from odradek.storage.log.offset_lookup import LookupStep, lookup_by_timestamp
from odradek.storage.log.segment_deletion import delete_old_segments
from odradek.storage.log.truncation import truncate_fully_and_start_at, truncate_to
from odradek.storage.offsets import LogOffsetMetadata, TimestampAndOffset
from odradek.storage.segment.fetch_data import FetchDataInfo, FetchIsolation
from odradek.storage.validation.validation_job import ValidationJob, assign
from odradek.storage.validation.validation_rules import ValidationRules
from odradek.storage.validation.validator import analyze, validate_and_assign

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.leader_epochs import LeaderEpochs
    from odradek.storage.log.local_log import LocalLog
    from odradek.storage.offsets import EpochEndOffset, EpochEntry
    from odradek.storage.producers.producer_state import ProducerStateEntry
    from odradek.storage.producers.producer_state_manager import ProducerMemory, ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments
    from odradek.storage.validation.validation_job import FinishedValidation


class UnifiedLog:
    """The log of one replica."""

    def __init__(
        self,
        local_log: LocalLog,
        log_dir: LogDir,
        *,
        log_start_offset: int,
        recovery_point: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerStateManager,
        topic_id: bytes | None,
        environment: Environment,
    ) -> None:
        self.state = LogState(
            local_log,
            log_dir,
            leader_epochs,
            producers,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
        )
        # Shortcuts to parts of the state, which are never replaced: they save each read and append a lookup.
        self.local_log = local_log
        self.log_dir = log_dir
        self.watermarks = self.state.watermarks
        self.flusher = self.state.flusher
        self.leader_epochs = leader_epochs
        self.topic_id = topic_id
        self._environment = environment
        self._clock = environment.clock
        self._monotonic_ns = environment.clock.monotonic_ns
        self._rules = self._rules_of(local_log.config)
        self._closed = False
        self._stored_epochs: list[EpochEntry] | None = None
        """The stored leader epochs, while the change that loading made is queued; None otherwise."""
        leader_epochs.on_change = self._write_epochs

    def __repr__(self) -> str:
        return f"UnifiedLog({self.topic_partition}, start={self.log_start_offset}, end={self.log_end_offset})"

    # -- properties --------------------------------------------------------------------------------

    @property
    def topic_partition(self) -> TopicPartition:
        return self.local_log.topic_partition

    @property
    def dir(self) -> str:
        return self.local_log.dir

    @property
    def config(self) -> LogConfig:
        return self.local_log.config

    @property
    def segments(self) -> LogSegments:
        return self.local_log.segments

    @property
    def log_end_offset(self) -> int:
        return self.local_log.log_end_offset

    @property
    def recovery_point(self) -> int:
        return self.flusher.recovery_point

    @property
    def last_flushed_ms(self) -> int:
        return self.flusher.last_flushed_ms

    @property
    def unflushed_messages(self) -> int:
        return self.state.unflushed_messages

    @property
    def size(self) -> int:
        return self.local_log.segments.size_in_bytes

    @property
    def latest_epoch(self) -> int:
        return self.state.leader_epochs.latest_epoch

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_future(self) -> bool:
        return self.local_log.dir.endswith(log_files.FUTURE_DIR_SUFFIX)

    # -- watermarks ------------------------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        return self.watermarks.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.watermarks.high_watermark

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        return self.watermarks.high_watermark_metadata

    @property
    def last_stable_offset(self) -> int:
        return self.watermarks.last_stable_offset

    @property
    def first_unstable_offset(self) -> int | None:
        unstable = self.watermarks.first_unstable
        return None if unstable is None else unstable.message_offset

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, limited to [log start, log end]; returns the result."""
        return self.watermarks.update_high_watermark(high_watermark)

    def maybe_increment_high_watermark(self, new: int | LogOffsetMetadata) -> bool:
        """Advance the high watermark; False when it is there already."""
        return self.watermarks.maybe_increment_high_watermark(new)

    def limit_of(self, isolation: FetchIsolation) -> int:
        """The first offset a reader may not see."""
        return self.watermarks.limit(isolation)

    # -- appending ---------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: object | None = None,
        may_take_long: bool = True,
        is_alone: bool = False,
    ) -> LogAppendInfo:
        """Append records of a client or coordinator and assign their offsets: all of them, or none.

        `is_alone`: no other replica has to have them. Raises: KafkaError; LongValidationError unless it may take long:
        then the caller has `validation_job` done, and calls `append_finished`.
        """
        # Both appends repeat the body of `disk`: its generator would cost too much per append.
        if self.log_dir.failure is not None:
            self.state.raise_offline()
        if not self.log_dir.space.take(records.nbytes):
            raise LogDirFullError(self.log_dir.path)
        try:
            found = analyze(records, self._rules, origin, may_take_long=may_take_long)
            if not found:
                return LogAppendInfo.unknown(self.log_start_offset)
            now_ms = self._clock.time_ms()
            batch = validate_and_assign(
                found,
                self._rules,
                origin,
                next_offset=self.local_log.log_end_offset,
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                may_take_long=may_take_long,
                monotonic_ns=self._monotonic_ns,
            )
            return append_validated(self.state, batch, leader_epoch, origin, verification_guard, now_ms, is_alone)
        except (CorruptRecordError, OSError) as error:
            self.state.raise_for("appending records", error)

    def validation_job(self, records: memoryview) -> ValidationJob:
        """The job for a worker process, for an append that is too long for the event loop."""
        return ValidationJob(records, self._rules, self.log_end_offset, self._clock.time_ms())

    def append_finished(
        self,
        records: memoryview,
        finished: FinishedValidation,
        leader_epoch: int,
        *,
        verification_guard: object | None = None,
    ) -> LogAppendInfo:
        """Append records of a client that a worker process has validated. Raises: KafkaError; LongValidationError if
        the result does not hold any more.
        """
        if not self.log_dir.space.take(records.nbytes):
            raise LogDirFullError(self.log_dir.path)
        with self.disk("appending records"):
            now_ms = self._clock.time_ms()
            batch = assign(
                finished,
                records,
                self._rules,
                next_offset=self.local_log.log_end_offset,
                leader_epoch=leader_epoch,
                now_ms=now_ms,
            )
            return append_validated(self.state, batch, leader_epoch, AppendOrigin.CLIENT, verification_guard, now_ms)

    def append_as_follower(self, records: memoryview) -> LogAppendInfo:
        """Append records fetched from the leader, with its offsets and epochs. Raises KafkaError."""
        if self.log_dir.failure is not None:
            self.state.raise_offline()
        if not self.log_dir.space.take(records.nbytes):
            raise LogDirFullError(self.log_dir.path)
        try:
            found = analyze(records, self._rules, AppendOrigin.REPLICATION)
            if not found:
                return LogAppendInfo.unknown(self.log_start_offset)
            return append_replicated(self.state, found, self._clock.time_ms())
        except (CorruptRecordError, OSError) as error:
            self.state.raise_for("appending records", error)

    # -- producers ------------------------------------------------------------------------------------

    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        return self.state.producers.active_producers

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        """Whether the producer has a transaction open here."""
        return self.state.checks.has_ongoing_transaction(producer_id)

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, producer_epoch: int
    ) -> object | None:
        """The guard that the append must present after the coordinator confirmed the partition; None when the producer
        has a transaction open here.
        """
        return self.state.checks.start_verification(producer_id, sequence, producer_epoch, self._clock.time_ms())

    def remove_expired_producers(self, now_ms: int) -> int:
        """Kafka: UnifiedLog.removeExpiredProducers."""
        return self.state.producers.remove_expired(now_ms)

    # -- rolling -----------------------------------------------------------------------------------

    def roll(self) -> LogSegment:
        """Begin a new segment at the log end."""
        return self.state.roll()

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self, start_offset: int, max_length: int, isolation: FetchIsolation, min_one_message: bool
    ) -> FetchDataInfo:
        """Records from the batch that contains `start_offset` to the limit of the isolation. Raises KafkaError."""
        if self.log_dir.failure is not None:
            self.state.raise_offline()
        if start_offset < self.watermarks.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition {self.topic_partition}, but we only have "
                f"log segments starting from offset: {self.log_start_offset}.",
            )
        try:
            return self.local_log.read(
                start_offset,
                max_length,
                self.local_log.end_offset_metadata
                if isolation is FetchIsolation.LOG_END
                else self.watermarks.limit_metadata(isolation),
                min_one_message=min_one_message,
                include_aborted=isolation is FetchIsolation.TXN_COMMITTED,
            )
        except OSError as error:
            self.state.fail("reading", error)

    def locate(self, offset: int) -> LogOffsetMetadata:
        """The offset with its file position, from which a delayed fetch counts bytes."""
        with self.disk("reading"):
            return self.local_log.locate(offset)

    def limit_metadata(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """The first offset a reader may not see, with its position."""
        if self.log_dir.failure is not None:
            self.state.raise_offline()
        try:
            return self.watermarks.limit_metadata(isolation)
        except OSError as error:
            self.state.fail("reading", error)

    def fetch_offset_by_timestamp(
        self, timestamp: int, isolation: FetchIsolation = FetchIsolation.LOG_END, step: LookupStep | None = None
    ) -> TimestampAndOffset | None:
        """The result of ListOffsets for a time in ms or a `SpecialTimestamp`; None if there is none.

        Raises: LongLookupError where the `step` ends.
        """
        return lookup_by_timestamp(self.state, timestamp, self.limit_of(isolation), step)

    # -- leader epochs -----------------------------------------------------------------------------

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Kafka: UnifiedLog.maybeAssignEpochStartOffset."""
        self.state.leader_epochs.assign(epoch, start_offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """(-1, -1) when undefined."""
        return self.leader_epochs.end_offset_for(epoch, self.local_log.log_end_offset)

    def write_leader_epochs_later(self, stored: list[EpochEntry] | None) -> None:
        """Queue the leader epochs for writing, because loading the log changed the `stored` ones.

        Loading an empty log removes its last epoch. If the same leader assigns it again, the write is withdrawn and the
        file stays untouched. If the broker dies before that, the next start repeats the change.
        """
        self._stored_epochs = stored
        entries = self.state.leader_epochs.entries
        self.log_dir.sync_queue.write_later(self._epochs_path, checkpoints.encode_epochs(entries))

    @property
    def _epochs_path(self) -> str:
        return os.path.join(self.local_log.dir, checkpoints.LEADER_EPOCH_FILE)

    def _write_epochs(self, entries: Sequence[EpochEntry]) -> None:
        self.watermarks.on_change()
        stored, self._stored_epochs = self._stored_epochs, None
        if entries == stored and self.log_dir.sync_queue.withdraw(self._epochs_path):
            return
        self.log_dir.sync_queue.write(self._epochs_path, checkpoints.encode_epochs(entries))

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Set the topic id, in memory and in partition.metadata, if logs have topic ids.

        Raises: KafkaError INCONSISTENT_TOPIC_ID if the log has a different one.
        """
        if self.topic_id == topic_id:
            return
        if self.topic_id is not None:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"Tried to assign a topic id to {self.topic_partition} that differs from the one in its log",
            )
        if not self._environment.keep_partition_metadata_file:
            return
        self.topic_id = topic_id
        path = os.path.join(self.local_log.dir, checkpoints.PARTITION_METADATA_FILE)
        self.log_dir.sync_queue.write(path, checkpoints.encode_partition_metadata(topic_id))

    # -- log start, retention, truncation ----------------------------------------------------------

    def maybe_increment_log_start_offset(self, offset: int, reason: str) -> bool:
        """Advance the log start; the next retention pass deletes the segments below."""
        with self.disk("increasing the log start offset"):
            return maybe_increment_log_start_offset(self.state, offset, reason)

    def delete_records(self, offset: int) -> int:
        """See `log_start.delete_records`."""
        return delete_records(self.state, offset)

    def delete_old_segments(self) -> int:
        """Apply retention; returns the number of deleted segments."""
        with self.disk("deleting segments"):
            return delete_old_segments(self.state, self._clock.time_ms())

    def truncate_to(self, offset: int, producers: ProducerMemory | None = None) -> bool:
        """Make `offset` the log end; False when the log ends at or below it. `producers`: from
        `truncation.replay_producers`.
        """
        with self.disk("truncating"):
            return truncate_to(self.state, offset, self._clock.time_ms(), producers)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Remove all data; the next record gets `offset`."""
        with self.disk("truncating"):
            truncate_fully_and_start_at(self.state, offset, log_start_offset, self._clock.time_ms())

    # -- flushing ----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Flush everything appended so far, in the background."""
        self.flusher.flush(self.local_log.log_end_offset)

    def when_flushed(self, offset: int, callback: Callable[[OSError | None], None]) -> None:
        """Call back when everything below `offset`, at most the log end, is flushed, or with the error instead."""
        self.flusher.when_flushed(offset, callback)

    # -- configuration, renaming, closing ----------------------------------------------------------

    def update_config(self, config: LogConfig) -> None:
        self.local_log.config = config
        self.state.leader_epochs.keep(config.record_version >= MAGIC_V2)
        self._rules = self._rules_of(config)

    def _rules_of(self, config: LogConfig) -> ValidationRules:
        return ValidationRules.of_config(
            config,
            self.local_log.topic_partition,
            validate_all=self._environment.validate_all_records,
            max_decompressed_bytes=self._environment.max_decompressed_bytes,
        )

    def rename_dir(self, path: str) -> None:
        """Rename the directory of the log. Queued writes are queued again for the new name."""
        dropped = self.log_dir.sync_queue.forget_dir(self.local_log.dir)
        with self.disk("renaming the log directory"):
            self._environment.fs.rename(self.local_log.dir, path)
        self.state.change_dir(path)
        if checkpoints.LEADER_EPOCH_FILE in dropped or not self.log_dir.sync_queue.is_idle:
            self._write_epochs(self.state.leader_epochs.entries)
        metadata_path = os.path.join(path, checkpoints.PARTITION_METADATA_FILE)
        if self.topic_id is not None and not os.path.exists(metadata_path):
            self.log_dir.sync_queue.write(metadata_path, checkpoints.encode_partition_metadata(self.topic_id))

    def give_up_dir(self, path: str) -> None:
        """Use `path` from now on, and drop queued writes: the caller deletes the log, and renames its directory.

        Raises: KafkaError KAFKA_STORAGE_ERROR if the directory is offline.
        """
        with self.disk("deleting the log"):
            self.log_dir.sync_queue.forget_dir(self.local_log.dir)
            self.state.change_dir(path)

    def close(self) -> None:
        """Write a producer snapshot, trim the indexes, flush everything and close all descriptors.

        Waits for the disk: for shutdown only, when no event loop runs.
        """
        if self._closed:
            return
        self._closed = True
        with self.disk("closing"):
            self.state.producers.take_snapshot(sync=True, is_required=True)
            self.segments.active.become_inactive()
            self.flusher.flush_now(self.local_log.log_end_offset)
            self.local_log.close()

    def discard(self) -> None:
        """Close all descriptors without writing: the directory failed or is to be deleted.

        Kafka: UnifiedLog.closeHandlers.
        """
        self._closed = True
        self.state.leader_epochs.on_change = None
        self.local_log.discard()
        self.flusher.abandon(self.log_dir.failure or OSError(errno.ENOENT, "the log was deleted"))

    def disk(self, what: str) -> AbstractContextManager[None]:
        """See `LogState.disk`."""
        return self.state.disk(what)
