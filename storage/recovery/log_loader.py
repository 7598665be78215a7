"""Loads a log from its directory, after a clean stop or a crash.

    1. clean up     delete .deleted and .cleaned files; put complete .swap files in place (`interrupted_swaps`)
    2. open         all segments; rebuild the indexes of one without an index or with a bad transaction index
    3. recover      after a crash: from the segment with the recovery point on, check the CRC of every batch and rebuild
                    the indexes; at the first bad or torn batch, truncate the file and delete the segments after it
    4. adjust       log start offset, leader epochs and producer state to the loaded segments

After a clean stop, indexes and producer snapshots are not checked: the marker is written after they are finished.

Invariants: nothing below the recovery point is scanned; no record after a truncation survives; a loaded log has at
least one segment.

Kafka: LogLoader.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from odradek.protocol.records.layout import MAGIC_V2, NO_TIMESTAMP
from odradek.storage import log_files
from odradek.storage.append_info import SegmentOffsetOverflowError
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.log.local_log import LocalLog
from odradek.storage.log.segment_swap import rename_to_swap
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import TimestampOffset
from odradek.storage.producers.producer_recovery import rebuild_producer_state, replay_beside, run_to_end
from odradek.storage.producers.producer_state_manager import ProducerStateManager
from odradek.storage.recovery.interrupted_swaps import file_names, finish_interrupted_swaps
from odradek.storage.recovery.segment_recovery import SegmentScan
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.log_segments import LogSegments
from odradek.storage.segment.mapped_index import InvalidOffsetError
from odradek.storage.segment.segment_split import OverflowedSegmentError, can_be_split, split_segment
from odradek.storage.segment.transaction_index import CorruptIndexError

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.offsets import EpochEntry
    from odradek.storage.producers.producer_state_manager import ProducerMemory

logger = logging.getLogger(__name__)

SEGMENTS_REPLAYED: Final = 32
"""The maximum number of flushed segments that are read for the last batches of producers."""

Progress = Callable[[int, int], None]
"""Called with the number of remaining segments and the bytes scanned since the last call."""


def load_log(
    path: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    log_dir: LogDir,
    environment: Environment,
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    first_dirty_offset: int = 0,
    had_clean_shutdown: bool = False,
    recovered: ProducerMemory | None = None,
    topic_id: bytes | None = None,
    created_fd: int | None = None,
) -> UnifiedLog:
    """Load the log in a directory, which is created if missing; recover it unless the last stop was clean.

    `first_dirty_offset`: compaction may have emptied segments below it. `recovered`: the producer state from a
    `recovery_job` that recovered the log already. `created_fd`: from `create_segment_files`, which has created the
    first segment in a new directory.
    Raises: OSError; KafkaError or CorruptRecordError for a log that cannot be loaded.
    """
    if created_fd is None:
        environment.fs.make_dir(path)
    loader = LogLoader(
        path,
        topic_partition,
        config,
        environment,
        log_start_offset,
        recovery_point,
        had_clean_shutdown,
        first_dirty_offset=first_dirty_offset,
        recovered=recovered,
    )
    if created_fd is None:
        loader.load()
    else:
        loader.begin_with(created_fd)
    stored_id = _stored_topic_id(path, environment)
    local_log = LocalLog(
        path, topic_partition, config, loader.segments, loader.log_end_offset, environment, log_dir.fail
    )
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
        log.write_leader_epochs_later(loader.stored_epochs)
    local_log.delete_later(loader.removed)
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log


def _stored_topic_id(path: str, environment: Environment) -> bytes | None:
    """The topic id in partition.metadata. When logs have no topic ids, the file is deleted.

    Kafka: UnifiedLog.initializeTopicId.
    """
    file = os.path.join(path, checkpoints.PARTITION_METADATA_FILE)
    if not environment.keep_partition_metadata_file:
        try:
            environment.fs.unlink(file)
        except OSError as error:
            logger.error("Error while trying to delete partition metadata file %s: %s", file, error)
        return None
    try:
        return checkpoints.read_partition_metadata(file)
    except checkpoints.CheckpointError as error:
        # The file is renamed into place after an fsync, so that a damaged one is a fault of the disk. As in Kafka, the
        # directory goes offline: without its topic id the log cannot be served.
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
        *,
        first_dirty_offset: int = 0,
        recovered: ProducerMemory | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.path = path
        self.topic_partition = topic_partition
        self.config = config
        self.environment = environment
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self.had_clean_shutdown = had_clean_shutdown
        self._first_dirty_offset = first_dirty_offset
        self.log_end_offset = log_start_offset
        self.segments = LogSegments()
        self.recovered = recovered
        self.on_progress = on_progress
        self._segments_remaining = 0
        self._split_parts: set[int] = set()
        self.removed: list[LogSegment] = []
        """Removed segments, renamed `.deleted`. The loaded log unlinks their files later."""
        self.stored_epochs = self._read_epochs()
        self.leader_epochs = LeaderEpochs(self.stored_epochs or ())
        self.leader_epochs.keep(config.record_version >= MAGIC_V2)
        self.producers = self._new_producer_state()
        if recovered is not None:
            self.producers.take_over(recovered)

    def begin_with(self, created_fd: int) -> None:
        """Begin a log with one new segment: there is nothing to load."""
        self.segments.add(LogSegment.open(self.path, 0, self.config, self.environment, created_fd=created_fd))

    def load(self) -> None:
        finish_interrupted_swaps(self.path, self.config, self.environment)
        self._splitting_overflows(self._open_segments)
        if self.path.endswith(log_files.DELETE_DIR_SUFFIX):
            self._ensure_a_segment(0)
            return
        if not self.had_clean_shutdown and self.recovered is None:
            self._splitting_overflows(self._recover_unflushed_segments)
        log_end_offset = self._drop_segments_below_log_start()
        self._ensure_a_segment(self.log_start_offset)
        if log_end_offset is None:
            log_end_offset = self.segments.active.read_next_offset()
        elif self.had_clean_shutdown:
            self.recovery_point = log_end_offset
        # Not the log end: recovery flushes nothing. If the broker dies before the next flush, the next start must scan
        # the same segments again.
        self.recovery_point = min(self.recovery_point, log_end_offset)
        self.log_end_offset = log_end_offset
        self.leader_epochs.truncate_from_end(log_end_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        self.log_start_offset = max(self.log_start_offset, self.segments.first.base_offset)
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
        return ProducerStateManager(self.topic_partition, self.path, self.environment.fs, self.environment.producers)

    @property
    def epochs_changed(self) -> bool:
        """Whether the leader epochs differ from those in their file, or the file is damaged."""
        return self.leader_epochs.entries != self.stored_epochs

    def _read_epochs(self) -> list[EpochEntry] | None:
        """None if the file is damaged."""
        path = os.path.join(self.path, checkpoints.LEADER_EPOCH_FILE)
        try:
            return checkpoints.read_epochs(path)
        except checkpoints.CheckpointError as error:
            # Recovery adds the epochs of the batches that it scans. Without the others, a follower truncates to its
            # high watermark.
            logger.warning("Ignoring the damaged leader epoch file of %s: %s", self.topic_partition, error)
            return None

    # -- 2. the segments --------------------------------------------------------------------------------

    def _open_segments(self) -> None:
        """Kafka: LogLoader.loadSegmentFiles."""
        self._discard_segments()
        names = file_names(self.path)
        present = set(names)
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix in log_files.SEGMENT_FILE_SUFFIXES[1:]:
                if stem.isdecimal() and stem + log_files.LOG_FILE_SUFFIX not in present:
                    logger.warning("Found an orphaned index file %s of %s", name, self.topic_partition)
                    self.environment.fs.unlink(os.path.join(self.path, name))
                continue
            if suffix != log_files.LOG_FILE_SUFFIX or (base_offset := log_files.offset_of(name)) is None:
                continue
            segment = LogSegment.open(self.path, base_offset, self.config, self.environment)
            has_time_index = stem + log_files.TIME_INDEX_FILE_SUFFIX in present
            if not has_time_index:
                segment.time_index.create()
            problem = self._index_problem(segment, stem + log_files.INDEX_FILE_SUFFIX in present, has_time_index)
            # Recovery handles the segments above the recovery point in order: an earlier one may be torn too.
            if problem is not None and (self.had_clean_shutdown or base_offset < self.recovery_point):
                logger.warning(
                    "Rebuilding the indexes of segment %d of %s: %s", base_offset, self.topic_partition, problem
                )
                self._recover_segment(segment, None)
            self.segments.add(segment)

    def _index_problem(self, segment: LogSegment, has_index: bool, has_time_index: bool) -> str | None:
        if not has_index:
            return "it has no offset index"
        if not has_time_index and not self.had_clean_shutdown:
            # A loss of power during the deletion of the segment. Apache continues with an empty time index.
            return "it has no time index"
        if segment.base_offset in self._split_parts and self.had_clean_shutdown:
            return "it was split off, and only its batches were copied"
        try:
            segment.txn_index.sanity_check()
        except CorruptIndexError as error:
            return str(error)
        return None

    def _discard_segments(self) -> None:
        for segment in self.segments:
            segment.discard()
        self.segments.clear()

    def _splitting_overflows(self, step: Callable[[], None]) -> None:
        """Run a step. If it finds a segment whose offsets cannot be indexed (KAFKA-6264), split that and repeat.

        Kafka: LogLoader.retryOnOffsetOverflow.
        """
        while True:
            try:
                return step()
            except OverflowedSegmentError as error:
                base_offset = error.base_offset
            logger.info("Splitting segment %d of %s: its offsets overflow", base_offset, self.topic_partition)
            self._discard_segments()
            parts = split_segment(self.path, base_offset, self.config, self.environment)
            self._split_parts.update(parts)
            rename_to_swap(self.path, parts, self.config, self.environment)
            self.environment.fs.sync_dir(self.path)
            finish_interrupted_swaps(self.path, self.config, self.environment)
            self._open_segments()

    def _ensure_a_segment(self, base_offset: int) -> None:
        if self.segments.is_empty:
            self.segments.add(LogSegment.open(self.path, base_offset, self.config, self.environment, create=True))

    # -- 3. recovery ----------------------------------------------------------------------------------------

    def _recover_unflushed_segments(self) -> None:
        """Kafka: LogLoader.recoverLog."""
        # Also the parts of a split: the scan that found the overflow had already emptied the indexes.
        unflushed = self.segments.range(min(self.recovery_point, *self._split_parts, 2**63), 2**63 - 1)
        flushed = self.segments.lower(unflushed[0].base_offset) if unflushed else None
        if flushed is not None and not flushed.has_finished_indexes():
            # Its records are flushed, but a loss of power lost the last entries of its indexes.
            unflushed.insert(0, flushed)
        producers = self._producers_before(unflushed[0]) if unflushed else None
        for index, segment in enumerate(unflushed):
            logger.info(
                "Recovering unflushed segment %d. %d/%d recovered for %s.",
                segment.base_offset,
                index,
                len(unflushed),
                self.topic_partition,
            )
            self._progress(len(unflushed) - index)
            following = unflushed[index + 1 :]
            try:
                cut = self._recover_segment(segment, producers, following)
            except InvalidOffsetError as error:
                logger.warning(
                    "Found an invalid offset in segment %d of %s, which is emptied: %s",
                    segment.base_offset,
                    self.topic_partition,
                    error,
                )
                self._remove(following)
                producers = None
                segment.begin_rebuild()
                cut = segment.end_rebuild(0, TimestampOffset(NO_TIMESTAMP, segment.base_offset))
            if cut or (following and self.segments.active is segment):
                logger.warning(
                    "Corruption found in segment %d of %s, truncating to offset %d: %d bytes are cut off",
                    segment.base_offset,
                    self.topic_partition,
                    segment.read_next_offset(),
                    cut,
                )
                break
        if producers is not None:
            self.producers = producers
        self._progress(0)

    def _producers_before(self, segment: LogSegment) -> ProducerStateManager:
        """The producer state at a segment's base offset, with the last five batches of each producer.

        A snapshot has only the last one. A producer whose acknowledgements were lost with the broker repeats up to five
        batches, and the first of them may lie in earlier segments. Apache uses the snapshot alone, and refuses such a
        batch with OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        producers = self._new_producer_state()
        self._rebuild_producers(producers, segment.base_offset)
        first = self._first_of_last_batches(segment)
        if first is not segment and not producers.is_empty:
            replay = replay_beside(
                producers,
                self.segments,
                log_start_offset=self.log_start_offset,
                last_offset=segment.base_offset,
                now_ms=self.environment.clock.time_ms(),
                replayed_from=first.base_offset,
            )
            producers.take_over(run_to_end(replay))
        return producers

    def _first_of_last_batches(self, segment: LogSegment) -> LogSegment:
        """The segment from which to replay the last batches before `segment`: the previous one, or several small ones
        of together about half a `segment.bytes`.
        """
        first, replayed_bytes = segment, 0
        for _ in range(SEGMENTS_REPLAYED):
            previous = self.segments.lower(first.base_offset)
            if previous is None or 2 * replayed_bytes > self.config.segment_bytes:
                break
            first, replayed_bytes = previous, replayed_bytes + previous.size
        return first

    def _rebuild_producers(self, producers: ProducerStateManager, last_offset: int) -> None:
        producers.forget_snapshots_above(last_offset)
        rebuild_producer_state(
            producers,
            self.segments,
            log_start_offset=self.log_start_offset,
            last_offset=last_offset,
            now_ms=self.environment.clock.time_ms(),
            after_clean_shutdown=False,
        )

    def _recover_segment(
        self, segment: LogSegment, producers: ProducerStateManager | None, following: list[LogSegment] | None = None
    ) -> int:
        """Check every batch and rebuild all indexes. Returns the number of truncated bytes; a truncation also removes
        the segments `following`.

        `producers`: the state at the segment's base offset, if known.
        Raises: OverflowedSegmentError when the segment has to be split first. Kafka: LogLoader.recoverSegment.
        """
        if producers is None:
            producers = self._new_producer_state()
            self._rebuild_producers(producers, segment.base_offset)
        else:
            # Batches of old formats have no producer, and do not advance the state.
            producers.map_end_offset = segment.base_offset
            producers.take_snapshot()
        scan = self._scan(segment, producers)
        # A loss of power can leave an empty segment; Apache serves such a log with a gap. So can a compaction, also one
        # before the policy of the topic was changed.
        may_be_compacted = self.config.compact or segment.base_offset < self._first_dirty_offset
        has_lost_all = not segment.size and not may_be_compacted
        if following and (
            scan.valid_bytes < segment.size or (has_lost_all and self.recovery_point < following[0].base_offset)
        ):
            # Before the truncation: if the process dies in between, the next start finds the bad batch again.
            self._remove(following)
        cut = segment.end_rebuild(scan.valid_bytes, scan.largest)
        producers.take_snapshot()  # not synced: its checksum shows whether it is complete
        return cut

    def _scan(self, segment: LogSegment, producers: ProducerStateManager) -> SegmentScan:
        segment.begin_rebuild()
        scan = SegmentScan(segment)
        try:
            scan.run(producers, self.leader_epochs, self._note_bytes)
        except SegmentOffsetOverflowError as error:
            if can_be_split(segment):
                raise OverflowedSegmentError(segment.base_offset) from error
            # Not an overflow by compaction, but one wrong offset: the base offset of a batch is not in its CRC.
            scan.run(producers, self.leader_epochs, self._note_bytes, ends_at_overflow=True)
        return scan

    def _progress(self, segments_remaining: int) -> None:
        self._segments_remaining = segments_remaining
        self._note_bytes(0)

    def _note_bytes(self, count: int) -> None:
        if self.on_progress is not None:
            self.on_progress(self._segments_remaining, count)

    def _remove(self, segments: list[LogSegment]) -> None:
        for segment in reversed(segments):
            self.segments.remove(segment.base_offset)
            segment.mark_deleted()
            self.producers.delete_snapshot(segment.base_offset)
        self.removed += segments

    # -- 4. adjusting -----------------------------------------------------------------------------------------

    def _drop_segments_below_log_start(self) -> int | None:
        """The log end offset; None after removing all segments, because the log ends below its checkpointed start.

        Kafka: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
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
