"""Loading a log from its directory, after a clean stop or a crash.

    1. clean up     .deleted and .cleaned files go; .swap files whose replacement was complete take their place
    2. open         every segment; one without an index or with a bad transaction index is rebuilt
    3. recover      after a crash: from the segment that holds the recovery point on, every batch is checked against its
                    CRC and every index is rebuilt; at the first bad or torn batch the file is cut and what follows goes
    4. fit          log start offset, leader epochs and producer state are brought into line with what is there

Indexes and producer snapshots are trusted after a clean stop: the marker says that they were finished.

Invariants: nothing below the recovery point is scanned; nothing behind a cut survives; the result has a segment.

Answers to LogLoader.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING

from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAGIC_V2
from odradek.storage import checkpoints, log_files
from odradek.storage.file_records import CorruptLogError
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.local_log import LocalLog
from odradek.storage.mapped_index import InvalidOffsetError
from odradek.storage.producer_recovery import complete_transaction, rebuild_producer_state, replay_batch
from odradek.storage.producer_state_manager import ProducerStateManager
from odradek.storage.segment import LogSegment
from odradek.storage.segments import LogSegments
from odradek.storage.transaction_index import CorruptIndexError
from odradek.storage.unified_log import UnifiedLog

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config import LogConfig
    from odradek.storage.environment import Environment
    from odradek.storage.leader_epochs import EpochEntry
    from odradek.storage.log_dir import LogDir

logger = logging.getLogger(__name__)


def load_log(
    path: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    log_dir: LogDir,
    environment: Environment,
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    had_clean_shutdown: bool = False,
    topic_id: bytes | None = None,
) -> UnifiedLog:
    """Open the log in a directory, made if it is missing; recover it unless the last stop was clean."""
    environment.fs.make_dir(path)
    loader = LogLoader(path, topic_partition, config, environment, log_start_offset, recovery_point, had_clean_shutdown)
    loader.load()
    stored_id = _stored_topic_id(path)
    local_log = LocalLog(path, topic_partition, config, loader.segments, loader.log_end_offset, environment)
    log = UnifiedLog(
        local_log,
        log_dir,
        log_start_offset=loader.log_start_offset,
        recovery_point=loader.recovery_point,
        leader_epochs=loader.leader_epochs,
        producers=loader.producers,
        topic_id=stored_id,
        environment=environment,
    )
    if loader.epochs_changed:
        log.write_leader_epochs()
    local_log.delete_later(loader.removed)
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log


def _stored_topic_id(path: str) -> bytes | None:
    try:
        return checkpoints.read_partition_metadata(os.path.join(path, checkpoints.PARTITION_METADATA_FILE))
    except checkpoints.CheckpointError as error:
        # Written by rename after an fsync, it is never half there: the disk has lost it. As in Kafka the directory goes
        # offline, rather than that a log is served under an id that was made up.
        raise OSError(errno.EIO, str(error)) from error


class LogLoader:
    """The steps of loading one log. Its attributes are the result."""

    def __init__(
        self,
        path: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        environment: Environment,
        log_start_offset: int,
        recovery_point: int,
        had_clean_shutdown: bool,
    ) -> None:
        self.path = path
        self.topic_partition = topic_partition
        self.config = config
        self.environment = environment
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self.had_clean_shutdown = had_clean_shutdown
        self.log_end_offset = log_start_offset
        self.segments = LogSegments()
        self.removed: list[LogSegment] = []
        """Segments found unusable and condemned. Their files are deleted by the log that is made of this."""
        self.epochs_changed = False
        self.leader_epochs = LeaderEpochs(self._read_epochs(), self._note_epoch_change)
        self.producers = self._new_producer_state()

    def load(self) -> None:
        self._finish_interrupted_swaps()
        self._open_segments()
        if self.path.endswith(log_files.DELETE_DIR_SUFFIX):
            self._ensure_a_segment(0)
            return
        if not self.had_clean_shutdown:
            self._recover_unflushed_segments()
        log_end_offset = self._drop_segments_below_log_start()
        self._ensure_a_segment(self.log_start_offset)
        if log_end_offset is None:
            log_end_offset = self.segments.active.read_next_offset()
        self.log_end_offset = log_end_offset
        if self.had_clean_shutdown:
            self.recovery_point = log_end_offset
        else:
            self.recovery_point = min(self.recovery_point, log_end_offset)
        self.leader_epochs.truncate_from_end(log_end_offset)
        checkpointed_start = self.log_start_offset
        self.log_start_offset = max(checkpointed_start, self.segments.first.base_offset)
        self.leader_epochs.truncate_from_start(checkpointed_start)
        self.producers.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producer_state(
            self.producers,
            self.segments,
            log_start_offset=self.log_start_offset,
            last_offset=log_end_offset,
            now_ms=self.environment.clock.time_ms(),
            after_clean_shutdown=self.had_clean_shutdown,
        )

    def _new_producer_state(self) -> ProducerStateManager:
        return ProducerStateManager(
            self.topic_partition, self.path, self.environment.fs, self.environment.producer_id_expiration_ms
        )

    def _read_epochs(self) -> list[EpochEntry]:
        path = os.path.join(self.path, checkpoints.LEADER_EPOCH_FILE)
        try:
            return checkpoints.read_epochs(path)
        except checkpoints.CheckpointError as error:
            # Batches carry their epoch: what is recovered below fills in, the rest is found by high watermark.
            logger.warning("Ignoring the leader epochs of %s: %s", self.topic_partition, error)
            return []

    def _note_epoch_change(self, _: object) -> None:
        self.epochs_changed = True

    # -- 1. files left by an interrupted operation ----------------------------------------------------

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file())

    def _unlink(self, name: str) -> None:
        self.environment.fs.unlink(os.path.join(self.path, name))

    def _finish_interrupted_swaps(self) -> None:
        """Roll `.cleaned` back and `.swap` forward: a swap began only after all its output was complete."""
        swaps, cleaned = [], []
        for name in self._names():
            if name.endswith(log_files.DELETED_FILE_SUFFIX):
                self._unlink(name)
            elif name.endswith(log_files.CLEANED_FILE_SUFFIX):
                cleaned.append(name)
            elif name.endswith(log_files.SWAP_FILE_SUFFIX):
                swaps.append(name)
        if cleaned:
            smallest = min(offset for name in cleaned if (offset := log_files.offset_of(name)) is not None)
            # The output was being renamed from the highest base down: what is at or above is not all there.
            invalid = [name for name in swaps if (log_files.offset_of(name) or 0) >= smallest]
            for name in [*invalid, *cleaned]:
                self._unlink(name)
            swaps = [name for name in swaps if name not in invalid]
        if swaps:
            self._replace_by_swapped(swaps)

    def _replace_by_swapped(self, swaps: list[str]) -> None:
        log_suffix = log_files.LOG_FILE_SUFFIX + log_files.SWAP_FILE_SUFFIX
        bases = [
            offset for name in swaps if name.endswith(log_suffix) and (offset := log_files.offset_of(name)) is not None
        ]
        ends = []
        for base_offset in bases:
            segment = LogSegment.open(
                self.path, base_offset, self.config, self.environment, suffix=log_files.SWAP_FILE_SUFFIX
            )
            ends.append(segment.read_next_offset())
            segment.discard()
        if bases:
            low, high = min(bases), max(ends)
            for name in self._names():
                offset = log_files.offset_of(name)
                if not name.endswith(log_files.SWAP_FILE_SUFFIX) and offset is not None and low <= offset < high:
                    logger.info("Deleting %s of %s, which was compacted already", name, self.topic_partition)
                    self._unlink(name)
        for name in swaps:
            path = os.path.join(self.path, name)
            self.environment.fs.rename(path, path.removesuffix(log_files.SWAP_FILE_SUFFIX))
        self.environment.fs.sync_dir(self.path)

    # -- 2. the segments --------------------------------------------------------------------------------

    def _open_segments(self) -> None:
        names = self._names()
        present = set(names)
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix in log_files.SEGMENT_FILE_SUFFIXES[1:]:
                if stem.isdecimal() and stem + log_files.LOG_FILE_SUFFIX not in present:
                    logger.warning("Found an orphaned index file %s of %s", name, self.topic_partition)
                    self._unlink(name)
                continue
            if suffix != log_files.LOG_FILE_SUFFIX or (base_offset := log_files.offset_of(name)) is None:
                continue
            segment = LogSegment.open(self.path, base_offset, self.config, self.environment)
            if stem + log_files.TIME_INDEX_FILE_SUFFIX not in present:
                segment.time_index.create()
            problem = self._index_problem(segment, stem + log_files.INDEX_FILE_SUFFIX in present)
            if problem is not None:
                logger.warning(
                    "Rebuilding the indexes of segment %d of %s: %s", base_offset, self.topic_partition, problem
                )
                self._recover_segment(segment)
            self.segments.add(segment)

    def _index_problem(self, segment: LogSegment, has_index: bool) -> str | None:
        if not has_index:
            return "it has no offset index"
        try:
            segment.txn_index.sanity_check()
        except CorruptIndexError as error:
            return str(error)
        return None

    def _ensure_a_segment(self, base_offset: int) -> None:
        if self.segments.is_empty:
            self.segments.add(LogSegment.open(self.path, base_offset, self.config, self.environment, create=True))

    # -- 3. recovery ----------------------------------------------------------------------------------------

    def _recover_unflushed_segments(self) -> None:
        unflushed = self.segments.range(self.recovery_point, 2**63 - 1)
        for index, segment in enumerate(unflushed):
            following = unflushed[index + 1 :]
            try:
                cut = self._recover_segment(segment, following)
            except InvalidOffsetError as error:
                logger.warning(
                    "Found an invalid offset in segment %d of %s, which is emptied: %s",
                    segment.base_offset,
                    self.topic_partition,
                    error,
                )
                self._remove(following)
                segment.begin_rebuild()
                cut = segment.end_rebuild(0)
            if cut:
                logger.warning(
                    "Cut %d bytes off segment %d of %s; the log ends at %d",
                    cut,
                    segment.base_offset,
                    self.topic_partition,
                    segment.read_next_offset(),
                )
                return

    def _recover_segment(self, segment: LogSegment, following: list[LogSegment] | None = None) -> int:
        """Check every batch, rebuild all indexes; answers how many bytes were cut, which removes `following`."""
        producers = self._new_producer_state()
        rebuild_producer_state(
            producers,
            self.segments,
            log_start_offset=self.log_start_offset,
            last_offset=segment.base_offset,
            now_ms=self.environment.clock.time_ms(),
            after_clean_shutdown=False,
        )
        segment.begin_rebuild()
        valid_bytes = last_indexed = 0
        latest_epoch = self.leader_epochs.latest_epoch
        try:
            for position, batch in segment.records.batches():
                if not batch.is_valid():
                    batch.ensure_valid()  # which says in what way it is not
                last_offset = batch.last_offset
                if segment.index_recovered(last_offset, batch.max_timestamp, position, last_indexed):
                    last_indexed = position
                if batch.magic >= MAGIC_V2:
                    if batch.partition_leader_epoch > latest_epoch:
                        latest_epoch = batch.partition_leader_epoch
                        self.leader_epochs.assign(latest_epoch, batch.base_offset)
                    if batch.producer_id >= 0:
                        completed = replay_batch(producers, batch)
                        if completed is not None:
                            complete_transaction(producers, segment, completed)
                    producers.map_end_offset = last_offset + 1
                valid_bytes = position + len(batch.buffer)
        except (CorruptRecordError, CorruptLogError) as error:
            logger.warning(
                "Found invalid messages in segment %d of %s at byte %d: %s",
                segment.base_offset,
                self.topic_partition,
                valid_bytes,
                error,
            )
        if valid_bytes < segment.size and following:
            # Before the cut: dying in between must find the bad batch again, not a log with a hole.
            self._remove(following)
        cut = segment.end_rebuild(valid_bytes)
        producers.take_snapshot(sync=True)
        return cut

    def _remove(self, segments: list[LogSegment]) -> None:
        for segment in reversed(segments):
            self.segments.remove(segment.base_offset)
            segment.condemn()
            self.producers.delete_snapshot(segment.base_offset)
        self.removed += segments

    # -- 4. fitting together ----------------------------------------------------------------------------------

    def _drop_segments_below_log_start(self) -> int | None:
        """The log end; or None after dropping everything, because it ends below where it is said to begin."""
        if self.segments.is_empty:
            return None
        log_end_offset = self.segments.active.read_next_offset()
        if log_end_offset >= self.log_start_offset:
            return log_end_offset
        logger.warning(
            "Deleting all segments of %s because its end %d is smaller than its start %d",
            self.topic_partition,
            log_end_offset,
            self.log_start_offset,
        )
        self._remove(list(self.segments))
        self.leader_epochs.clear()
        self.producers.truncate_fully_and_start_at(self.log_start_offset)
        return None
