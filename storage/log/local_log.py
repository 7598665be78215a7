"""The segments of one log on the local disk: reading, rolling, truncation, deletion.

Producers, epochs and watermarks belong to `UnifiedLog`, which owns this. The files of a removed segment are renamed
`.deleted` at once and unlinked after `file.delete.delay.ms`, because a consumer may still be reading them. If that
fails, the log directory goes offline.

Invariants: there is always an active segment; the log end offset is the offset of the next record, and only a
truncation lowers it; `end_offset_metadata` is the end of the active segment, so whatever changes one moves the other.

Kafka: LocalLog.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.storage import log_files
from odradek.storage.disk.disk_space import DiskFullError, is_no_space
from odradek.storage.disk.file_system import may_exist
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import EMPTY_RECORDS, FetchDataInfo
from odradek.storage.segment.log_segment import LogSegment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.segment.log_segments import LogSegments
    from odradek.storage.segment.transaction_index import AbortedTxn


logger = logging.getLogger(__name__)


class LocalLog:
    """An append-only sequence of records in segments. `fail_dir` takes its log directory offline, with a message."""

    __slots__ = (
        "_awaiting_deletion",
        "_fail_dir",
        "config",
        "dir",
        "end_offset_metadata",
        "environment",
        "log_end_offset",
        "segments",
        "topic_partition",
    )

    def __init__(
        self,
        log_dir: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        segments: LogSegments,
        log_end_offset: int,
        environment: Environment,
        fail_dir: Callable[[str, OSError], None],
    ) -> None:
        self.dir = log_dir
        self.topic_partition = topic_partition
        self.config = config
        self.segments = segments
        self.log_end_offset = log_end_offset
        self.environment = environment
        self._fail_dir = fail_dir
        self._awaiting_deletion: list[LogSegment] = []
        self.end_offset_metadata = LogOffsetMetadata(log_end_offset)
        """The log end offset with its position. Not a property: each read and each waiting fetch asks for it."""
        self.move_end(log_end_offset)

    def move_end(self, log_end_offset: int) -> None:
        """The active segment or its size has changed: the log ends there, with this offset."""
        active = self.segments.active
        self.log_end_offset = log_end_offset
        end = (log_end_offset, active.base_offset, active.records.size)
        self.end_offset_metadata = new_tuple(LogOffsetMetadata, end)

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_length: int,
        max_offset: LogOffsetMetadata,
        *,
        min_one_message: bool,
        include_aborted: bool = False,
    ) -> FetchDataInfo:
        """Records from the batch holding `start_offset` on, ending before `max_offset`."""
        if start_offset == max_offset.message_offset:
            return _empty(max_offset, include_aborted=include_aborted)
        active = self.segments.active
        segment = active if start_offset >= active.base_offset else self.segments.floor(start_offset)
        if start_offset > self.log_end_offset or segment is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {start_offset} for partition {self.topic_partition}, but we only have "
                f"log segments upto {self.log_end_offset}.",
            )
        if start_offset > max_offset.message_offset:
            return _empty(self.locate(start_offset), include_aborted=include_aborted)
        while segment is not None:
            if segment.base_offset < max_offset.segment_base_offset:
                max_position = segment.records.size
            elif segment.base_offset == max_offset.segment_base_offset:
                max_position = max_offset.relative_position
            else:
                break
            found = segment.read(start_offset, max_length, max_position, min_one_message=min_one_message)
            if found is not None:
                if include_aborted:
                    found.aborted_transactions = self._aborted_in(segment, found)
                return found
            # Compaction removed the rest of this segment: the next record is in the next segment.
            segment = self.segments.higher(segment.base_offset)
        # As in Apache Kafka, an empty answer of this kind has no list of aborted transactions.
        return _empty(self.end_offset_metadata, include_aborted=False)

    def locate(self, offset: int) -> LogOffsetMetadata:
        """The offset with the position of the batch that holds it, or of the next one.

        Kafka: LocalLog.convertToOffsetMetadataOrThrow.
        """
        if offset == self.log_end_offset:
            return self.end_offset_metadata
        segment = self.segments.floor(offset)
        if segment is None or offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} of partition {self.topic_partition} is outside the log, which ends at "
                f"{self.log_end_offset}.",
            )
        while segment is not None:
            found = segment.translate_offset(offset)
            if found is not None:
                return LogOffsetMetadata(offset, segment.base_offset, found.position)
            segment = self.segments.higher(segment.base_offset)
        return self.end_offset_metadata._replace(message_offset=offset)

    def _aborted_in(self, segment: LogSegment, found: FetchDataInfo) -> list[AbortedTxn]:
        """Kafka: LocalLog.addAbortedTransactions."""
        start = found.fetch_offset_metadata
        upper = segment.fetch_upper_bound_offset(start.relative_position, found.size_in_bytes)
        if upper is None:
            following = self.segments.higher(segment.base_offset)
            upper = self.log_end_offset if following is None else following.base_offset
        return self.collect_aborted(start.message_offset, upper, segment)

    def collect_aborted(self, start_offset: int, upper_bound: int, first: LogSegment) -> list[AbortedTxn]:
        """The aborted transactions overlapping [start_offset, upper_bound), from `first` on.

        Kafka: LocalLog.collectAbortedTransactions.
        """
        aborted: list[AbortedTxn] = []
        segment: LogSegment | None = first
        while segment is not None:
            found, is_complete = segment.txn_index.collect(start_offset, upper_bound)
            aborted += found
            if is_complete:
                break
            segment = self.segments.higher(segment.base_offset)
        return aborted

    # -- rolling -----------------------------------------------------------------------------------

    def roll(self, expected_offset: int = 0) -> LogSegment:
        """Begin a new segment at the log end, or at `expected_offset` if that is larger.

        Raises: OSError; DiskFullError, which leaves the active segment unchanged.
        """
        begun_ms = self.environment.clock.monotonic_ms()
        base_offset = max(expected_offset, self.log_end_offset)
        active = self.segments.active
        if base_offset in self.segments:
            if active.base_offset != base_offset or active.size:
                raise RuntimeError(
                    f"Trying to roll a new log segment for topic partition {self.topic_partition} with start offset "
                    f"{base_offset} while it already exists."
                )
            # An index without room for one entry is always full (KAFKA-6388): the empty segment is created again.
            segment = self._replace_segment(active, base_offset)
            self.move_end(self.log_end_offset)
            return segment
        if base_offset < active.base_offset:
            raise RuntimeError(
                f"Trying to roll a new log segment for topic partition {self.topic_partition} with start offset "
                f"{base_offset} lower than start offset of the active segment {active}"
            )
        for path in self._files_of(base_offset):
            logger.warning("Newly rolled segment file %s already exists; deleting it first", path)
            self.environment.fs.unlink(path)
        try:
            active.become_inactive()
            segment = LogSegment.open(self.dir, base_offset, self.config, self.environment, create=True)
        except OSError as error:
            if not is_no_space(error):
                raise
            for path in self._files_of(base_offset):
                self.environment.fs.unlink(path)
            raise DiskFullError(*error.args) from error
        self.segments.add(segment)
        self.move_end(self.log_end_offset)
        took_ms = self.environment.clock.monotonic_ms() - begun_ms
        logger.info("Rolled new log segment of %s at offset %d in %d ms.", self.topic_partition, base_offset, took_ms)
        return segment

    def _files_of(self, base_offset: int) -> list[str]:
        paths = [
            os.path.join(self.dir, log_files.offset_name(base_offset, suffix))
            for suffix in log_files.SEGMENT_FILE_SUFFIXES
        ]
        return [path for path in paths if may_exist(path)]

    # -- truncation --------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> list[LogSegment]:
        """Make `offset` the log end; returns the removed segments. The batch that contains it is removed whole."""
        removed = [segment for segment in self.segments.from_offset(offset) if segment.base_offset > offset]
        # The newest first: if the process dies half-way, the remaining segments have no gap.
        self.remove_segments(reversed(removed))
        self.segments.active.truncate_to(offset, self.environment.clock.time_ms())
        self.move_end(offset)
        return removed

    def truncate_fully_and_start_at(self, offset: int) -> list[LogSegment]:
        """Remove all segments and begin an empty one at `offset`; returns the removed segments."""
        removed = list(self.segments)
        self.remove_segments(removed[:-1])
        self._replace_segment(removed[-1], offset)
        self.move_end(offset)
        return removed

    def _replace_segment(self, old: LogSegment, base_offset: int) -> LogSegment:
        """Replace a segment by an empty one. The old files are renamed first: the new ones may have the same names."""
        self._mark_deleted([old])
        segment = LogSegment.open(self.dir, base_offset, self.config, self.environment, create=True)
        self.segments.add(segment)
        if old.base_offset != base_offset:
            self.segments.remove(old.base_offset)
        return segment

    # -- deletion ----------------------------------------------------------------------------------

    def remove_segments(self, segments: Iterable[LogSegment]) -> None:
        """Take segments out of the log, in this order, and delete their files later.

        Kafka: LocalLog.removeAndDeleteSegments.
        """
        removed = list(segments)
        for segment in removed:
            self.segments.remove(segment.base_offset)
        self._mark_deleted(removed)

    def delete_snapshot_later(self, path: str) -> None:
        """Unlink a producer snapshot that is renamed `.deleted`, after `file.delete.delay.ms`."""
        name = os.path.basename(path)

        def unlink() -> None:
            self._unlink([os.path.join(self.dir, name)], "producer state snapshots")

        self.environment.timer.schedule(self.config.file_delete_delay_ms, unlink)

    def _mark_deleted(self, removed: list[LogSegment]) -> None:
        for segment in removed:
            segment.mark_deleted()
        self.delete_later(removed)

    def delete_later(self, removed: list[LogSegment]) -> None:
        """Unlink the files of segments that are renamed `.deleted`, after `file.delete.delay.ms`.

        Kafka: LocalLog.deleteSegmentFiles.
        """
        if not removed:
            return
        self._awaiting_deletion += removed

        def delete() -> None:
            paths: list[str] = []
            for segment in removed:
                segment.discard()
                paths += segment.paths
                with contextlib.suppress(ValueError):  # the log was closed before the delay passed
                    self._awaiting_deletion.remove(segment)
            self._unlink(paths, "segments")

        self.environment.timer.schedule(self.config.file_delete_delay_ms, delete)

    def _unlink(self, paths: list[str], what: str) -> None:
        fs = self.environment.fs

        def work() -> None:
            for path in paths:
                fs.unlink(path)

        def unlinked(result: OSError | None) -> None:
            if isinstance(result, OSError):
                self._fail_dir(f"Error while deleting {what} for {self.topic_partition} in {self.dir}", result)

        self.environment.io_pool.submit(work, unlinked)

    # -- the directory -----------------------------------------------------------------------------

    def change_dir(self, path: str) -> None:
        """Update the paths after the directory was renamed, also of the segments that await deletion."""
        self.dir = path
        for segment in [*self.segments, *self._awaiting_deletion]:
            segment.change_dir(path)

    def close(self) -> None:
        for segment in self.segments:
            segment.close()
        self._discard_awaiting_deletion()

    def discard(self) -> None:
        """Close all descriptors without writing: the directory is offline or about to be removed.

        Kafka: LocalLog.closeHandlers.
        """
        for segment in self.segments:
            segment.discard()
        self._discard_awaiting_deletion()

    def _discard_awaiting_deletion(self) -> None:
        for segment in self._awaiting_deletion:
            segment.discard()
        self._awaiting_deletion.clear()


def _empty(metadata: LogOffsetMetadata, *, include_aborted: bool) -> FetchDataInfo:
    return FetchDataInfo(metadata, EMPTY_RECORDS, aborted_transactions=[] if include_aborted else None)
