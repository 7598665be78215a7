"""One segment of a log: a file of batches with its offset, time and transaction index.

The indexes are sparse: an append adds an entry when more than `index.interval.bytes` were written since the last one,
before its own size is counted, so that the first batch never gets one. A time index entry is the largest timestamp so
far with the last offset of its batch.

Invariants: offsets in the file increase; every offset is at most 2^31-1 above the base offset; the positions in an
index are starts of batches. Only the last segment of a log is appended to. An append that finds no space leaves the
files and the segment unchanged: index space is allocated before the write, and a partial write is truncated.

Kafka: LogSegment, RollParams.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_TIMESTAMP
from odradek.storage import log_files
from odradek.storage.append_info import MAX_RELATIVE_OFFSET, SegmentOffsetOverflowError
from odradek.storage.disk.descriptors import is_out_of_descriptors
from odradek.storage.disk.disk_space import DiskFullError, is_no_space
from odradek.storage.offsets import LogOffsetMetadata, TimestampOffset
from odradek.storage.segment.fetch_data import EMPTY_RECORDS, FetchDataInfo
from odradek.storage.segment.file_records import FileRecords, FileRegion
from odradek.storage.segment.offset_index import OffsetIndex
from odradek.storage.segment.time_index import TimeIndex
from odradek.storage.segment.transaction_index import AbortedTxn, TransactionIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.storage.append_info import AppendedBatch
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.file_system import Bytes
    from odradek.storage.segment.file_records import BatchPosition


class LogSegment:
    """A part of a log, named by its base offset: the smallest offset it may contain."""

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_index_room",
        "_largest",
        "_last_read",
        "_rolling_timestamp",
        "appended",
        "base_offset",
        "created_ms",
        "index_interval_bytes",
        "jitter_ms",
        "offset_index",
        "records",
        "time_index",
        "txn_index",
        "warm_until_ms",
    )

    def __init__(
        self,
        base_offset: int,
        records: FileRecords,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        txn_index: TransactionIndex,
        *,
        index_interval_bytes: int,
        jitter_ms: int,
        created_ms: int,
    ) -> None:
        self.base_offset = base_offset
        self.records = records
        self.offset_index = offset_index
        self.time_index = time_index
        self.txn_index = txn_index
        self.index_interval_bytes = index_interval_bytes
        self.jitter_ms = jitter_ms
        self.created_ms = created_ms
        self._bytes_since_last_index_entry = 0
        self._index_room = 0
        """Both indexes have room for so many entries, if not for more."""
        self._rolling_timestamp: int | None = None
        self._largest: TimestampOffset | None = None
        self._last_read: BatchPosition | None = None
        """Where the last read began. All who follow the end of a log read the same batch, one after the other."""
        self.appended: BatchPosition | None = None
        """The last batch that a leader has appended: who waits for the end of the log reads it next."""
        self.warm_until_ms = 0
        """Monotonic time in ms until which readers assume that the index is in memory. Readers update it."""

    @classmethod
    def open(
        cls,
        directory: str,
        base_offset: int,
        config: LogConfig,
        environment: Environment,
        *,
        create: bool = False,
        created_fd: int | None = None,
        suffix: str = "",
    ) -> LogSegment:
        """The segment with this base offset, from existing files or, with `create`, from new ones. Raises OSError.

        `created_fd`: from `create_segment_files`, which has created the files; the segment owns it from now on.
        """
        fs, open_files = environment.fs, environment.open_files
        stem = os.path.join(directory, f"{base_offset:020d}")
        log_path = stem + log_files.LOG_FILE_SUFFIX + suffix
        if created_fd is not None:
            records = FileRecords.of_new_file(log_path, fs, open_files, created_fd)
        elif create:
            preallocate = config.segment_bytes if config.preallocate else 0
            records = FileRecords.create(log_path, fs, open_files, preallocate)
        else:
            records = FileRecords.existing(log_path, fs, open_files)
        index_bytes = config.segment_index_bytes
        offset_index = OffsetIndex(
            stem + log_files.INDEX_FILE_SUFFIX + suffix, base_offset, index_bytes, fs, open_files
        )
        time_index = TimeIndex(
            stem + log_files.TIME_INDEX_FILE_SUFFIX + suffix, base_offset, index_bytes, fs, open_files
        )
        txn_index = TransactionIndex(stem + log_files.TXN_INDEX_FILE_SUFFIX + suffix, base_offset, fs, open_files)
        if create:
            try:
                offset_index.create()
                time_index.create()
            except OSError:
                records.close()
                raise
        return cls(
            base_offset,
            records,
            offset_index,
            time_index,
            txn_index,
            index_interval_bytes=config.index_interval_bytes,
            jitter_ms=environment.segment_jitter_ms(config),
            created_ms=environment.clock.time_ms(),
        )

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size}, path={self.records.path})"

    @property
    def size(self) -> int:
        return self.records.size

    # -- appending ---------------------------------------------------------------------------------

    def append(
        self,
        parts: Sequence[Bytes],
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        aborted: Sequence[AbortedTxn] = (),
    ) -> None:
        """Append one batch, and index the transactions that it aborts. Raises: OSError; DiskFullError, which leaves
        everything unchanged.
        """
        if not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:  # in line: one call less for each append
            raise self._overflow(last_offset)
        records = self.records
        position = records.size
        is_entry_due = self._bytes_since_last_index_entry > self.index_interval_bytes
        if is_entry_due or aborted:
            size = self._write(parts, 1 if is_entry_due else 0, aborted)
        else:
            try:
                size = records.append(parts)
            except OSError as error:
                self._undo_write(position, error)
        if position == 0:
            self._rolling_timestamp = max_timestamp
        largest = self._largest or self.largest
        if max_timestamp > largest.timestamp:
            self._largest = largest = new_tuple(TimestampOffset, (max_timestamp, offset_of_max_timestamp))
        if is_entry_due:  # the indexes have room for it
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*largest)
            self._bytes_since_last_index_entry = 0
            self._index_room -= 1
        self._bytes_since_last_index_entry += size

    def append_batches(
        self, parts: Sequence[Bytes], batches: Sequence[AppendedBatch], aborted: Sequence[AbortedTxn] = ()
    ) -> None:
        """Append several batches with one write. The index entries are those of single appends. Raises: as `append`."""
        self.ensure_offset_in_range(batches[-1].last_offset)
        position = self.records.size
        self._write(parts, self._entries_due(batches), aborted)
        if position == 0:
            self._rolling_timestamp = max(batch.max_timestamp for batch in batches)
        largest = self._largest or self.largest
        for batch in batches:
            if batch.max_timestamp > largest.timestamp:
                self._largest = largest = TimestampOffset(batch.max_timestamp, batch.offset_of_max_timestamp)
            if self._bytes_since_last_index_entry > self.index_interval_bytes:
                self.offset_index.append(batch.last_offset, position)
                self.time_index.maybe_append(*largest)
                self._bytes_since_last_index_entry = 0
                self._index_room -= 1
            self._bytes_since_last_index_entry += batch.size
            position += batch.size

    def _write(self, parts: Sequence[Bytes], index_entries: int, aborted: Sequence[AbortedTxn]) -> int:
        """The steps of an append that may run out of space. Index entries added afterwards cannot fail."""
        position = self.records.size
        try:
            if index_entries:
                self.offset_index.make_room(index_entries)
                self.time_index.make_room(index_entries)
            size = self.records.append(parts)
            if aborted:
                self.txn_index.append(*aborted)
        except OSError as error:
            self._undo_write(position, error)
        return size

    def _undo_write(self, position: int, error: OSError) -> NoReturn:
        if not is_no_space(error):
            raise error
        # Undoing needs a descriptor: skip it if none was left and nothing was written.
        if not is_out_of_descriptors(error) or self.records.size > position:
            self.records.undo_append(position)
        raise DiskFullError(*error.args) from error

    def _entries_due(self, batches: Sequence[AppendedBatch]) -> int:
        """The number of batches that will get an index entry."""
        due, since_last = 0, self._bytes_since_last_index_entry
        for batch in batches:
            if since_last > self.index_interval_bytes:
                due, since_last = due + 1, 0
            since_last += batch.size
        return due

    def ensure_offset_in_range(self, offset: int) -> None:
        """Raise SegmentOffsetOverflowError for an offset that the indexes cannot represent."""
        if not 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            raise self._overflow(offset)

    def _overflow(self, offset: int) -> SegmentOffsetOverflowError:
        return SegmentOffsetOverflowError(
            f"Detected offset overflow at offset {offset} in segment {self.base_offset} of {self.records.path}"
        )

    def should_roll(self, config: LogConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether an append of `size` bytes must go to a new segment."""
        current = self.records.size
        if current > config.segment_bytes - size or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if current:
            first = self._rolling_timestamp  # in line: one call less for each append
            if first is not None and first >= 0:
                waited_ms = max_timestamp - first
            else:
                waited_ms = self.time_waited_for_roll(now_ms, max_timestamp)
            if waited_ms > config.max_segment_ms - self.jitter_ms:
                return True
        if self._index_room <= 0:
            self._index_room = min(self.offset_index.room, self.time_index.room)
        return self._index_room <= 0

    def time_waited_for_roll(self, now_ms: int, max_timestamp: int) -> int:
        """The age of the segment in ms: by record timestamps if the first batch has one, else since its creation."""
        first = self._rolling_timestamp
        if first is None:
            first = self.first_batch_timestamp()
        return max_timestamp - first if first >= 0 else now_ms - self.created_ms

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 without one. Kafka: LogSegment.getFirstBatchTimestamp."""
        if self._rolling_timestamp is None:
            first = next(self.records.positions(), None)
            if first is None:
                return NO_TIMESTAMP
            self._rolling_timestamp = first.max_timestamp
        return self._rolling_timestamp

    # -- reading -----------------------------------------------------------------------------------

    def translate_offset(self, offset: int, start_position: int = 0) -> BatchPosition | None:
        """The batch that contains the offset, or the next one after it; None after the last."""
        position = max(self.offset_index.lookup(offset).position, start_position)
        return self.records.find_offset(offset, position)

    def read(
        self, start_offset: int, max_size: int, max_position: int, *, min_one_message: bool
    ) -> FetchDataInfo | None:
        """The region from the batch that contains `start_offset` up to `max_position`; None after the last batch.

        Raises: KafkaError UNKNOWN_SERVER_ERROR for a size below zero, as Apache Kafka answers it.
        """
        if max_size < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max size {max_size} for a read from {self.records.path}"
            )
        found = self._last_read
        if found is None or not found.base_offset <= start_offset <= found.last_offset:
            found = self.appended
            if found is None or not found.base_offset <= start_offset <= found.last_offset:
                position = self.offset_index.lookup(start_offset).position
                found = self.records.find_offset(start_offset, position)
            self._last_read = found
            if found is None:
                return None
        metadata = new_tuple(LogOffsetMetadata, (start_offset, self.base_offset, found.position))
        limit = max(max_size, found.size) if min_one_message else max_size
        if limit <= 0:
            return FetchDataInfo(metadata, EMPTY_RECORDS)
        size = max(0, min(max_position - found.position, limit, self.records.size - found.position))
        return FetchDataInfo(metadata, FileRegion(self.records, found.position, size), limit < found.size)

    def fetch_upper_bound_offset(self, start_position: int, size: int) -> int | None:
        """An offset above all records of the region, from the offset index; None if the index has no entry after it."""
        return self.offset_index.offset_at_or_after_position(start_position + size)

    def read_next_offset(self) -> int:
        """The offset after the last record; the base offset for an empty segment."""
        next_offset = self.base_offset
        for batch in self.records.positions(self.offset_index.lookup(self.offset_index.last_offset).position):
            next_offset = batch.last_offset + 1
        return next_offset

    # -- time --------------------------------------------------------------------------------------

    @property
    def largest(self) -> TimestampOffset:
        """The largest timestamp so far, with the last offset of its batch; (-1, base offset) without one.

        Kafka: LogSegment.maxTimestampAndOffsetSoFar.
        """
        if self._largest is None:
            self._largest = self.time_index.last_entry
        return self._largest

    @property
    def largest_timestamp(self) -> int:
        """The time in ms for retention: the largest timestamp, or the file's modification time if no record has one."""
        timestamp = self.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        return os.stat(self.records.path).st_mtime_ns // 1_000_000

    def read_largest_timestamp(self) -> TimestampOffset:
        """Compute the largest timestamp from the last time index entry and the batches after it."""
        largest = self.time_index.last_entry
        start = self.offset_index.lookup(largest.offset).position
        for where in self.records.positions(start):
            if where.max_timestamp > largest.timestamp:
                largest = TimestampOffset(where.max_timestamp, where.last_offset)
        return largest

    def has_finished_indexes(self) -> bool:
        """Whether the indexes end as `become_inactive` leaves them. After a loss of power, records may be flushed and
        index entries lost.

        Checks only the ends of the indexes, which were written last. They are read before a lookup maps them: see
        `MappedIndex._last_fields`. Raises OSError.
        """
        last, last_offset = self.time_index.last_entry, self.offset_index.last_offset
        try:
            if self.time_index.entries:
                found = self.translate_offset(last.offset)
                if found is None or found.max_timestamp != last.timestamp:
                    return False
            if entries := self.offset_index.entries:
                position = self.offset_index.entry(entries - 1).position
                at = next(self.records.positions(position), None)
                if not position or at is None or not at.base_offset <= last_offset < self.read_next_offset():
                    return False
            return self.read_largest_timestamp() == last
        except KafkaError:  # an entry has a position where no batch begins
            return False

    # -- truncation and rebuilding -----------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove the batch that contains the offset and all after it; returns the number of removed bytes.

        The file of the records is not cut yet: that is left to `records.cut`.
        """
        found = self.translate_offset(offset)
        self._last_read = self.appended = None
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        cut = 0 if found is None else self.records.cut_later(found.position)
        if not self.records.size:
            self.created_ms = now_ms
            self._rolling_timestamp = None
        self._bytes_since_last_index_entry = 0
        if self._largest is None or self._largest.timestamp >= 0:
            self._largest = self.read_largest_timestamp()
        return cut

    def begin_rebuild(self) -> None:
        """Empty all indexes. The scan of the batches fills them with `add_recovered_entry`."""
        for index in (self.offset_index, self.time_index):
            index.create()  # also for an index without entries: a start rebuilds a missing file
            index.rewrite()
        self.txn_index.clear()
        self._largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._bytes_since_last_index_entry = 0
        self._rolling_timestamp = None

    def add_recovered_entry(self, last_offset: int, position: int, largest: TimestampOffset) -> None:
        """Index a batch found by recovery. `largest`: the largest timestamp up to this batch."""
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(*largest)

    def end_rebuild(self, valid_bytes: int, largest: TimestampOffset) -> int:
        """Truncate the file after the last good batch and finish the indexes; returns the number of removed bytes."""
        self._largest = largest
        self._last_read = self.appended = None
        cut = self.records.truncate_to(valid_bytes)
        self.offset_index.trim()
        self.time_index.maybe_append(*largest)
        self.time_index.trim()
        return cut

    # -- files -------------------------------------------------------------------------------------

    def become_inactive(self) -> None:
        """Finish the files when the segment gets no more appends. Kafka: LogSegment.onBecomeInactiveSegment."""
        if self._largest is not None:
            self.time_index.maybe_append(*self._largest)
        self.offset_index.trim()
        self.time_index.trim()
        self.records.trim()

    @property
    def has_unsynced_indexes(self) -> bool:
        return self.offset_index.is_dirty or self.time_index.is_dirty

    def sync_descriptors(self, *, unchanged_too: bool = False) -> list[int]:
        """Descriptors that the caller owns, to fsync all files that changed since the last call.

        Raises OSError: no descriptor is left open, and who tries again asks for the `unchanged_too`.
        """
        descriptors = [self.records.duplicate_fd()]
        try:
            for index in (self.offset_index, self.time_index):
                opened = index.open_for_sync(unchanged_too=unchanged_too)
                if opened is not None:
                    descriptors.append(opened)
            opened = self.txn_index.open_for_sync()
            if opened is not None:
                descriptors.append(opened)
        except OSError:
            for fd in descriptors:
                os.close(fd)
            raise
        return descriptors

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files from one suffix to another. Kafka: LogSegment.changeFileSuffixes."""
        for file in (self.records, self.offset_index, self.time_index, self.txn_index):
            file.rename_to(file.path.removesuffix(old) + new)

    def mark_deleted(self) -> None:
        """Rename the files to `.deleted`, which a start removes. Running reads continue."""
        self.change_suffix("", log_files.DELETED_FILE_SUFFIX)
        self.offset_index.discard()
        self.time_index.discard()

    def change_dir(self, directory: str) -> None:
        """Update the paths after the directory was renamed. Kafka: LogSegment.updateParentDir."""
        for file in (self.records, self.offset_index, self.time_index, self.txn_index):
            file.path = os.path.join(directory, os.path.basename(file.path))

    @property
    def paths(self) -> list[str]:
        return [file.path for file in (self.records, self.offset_index, self.time_index, self.txn_index)]

    def close(self) -> None:
        """Finish the indexes and close all descriptors."""
        if self._largest is not None:
            self.time_index.maybe_append(*self._largest)
        self.offset_index.close()
        self.time_index.close()
        self.records.trim()
        self.records.close()

    def discard(self) -> None:
        """Close all descriptors, and leave the files, which are about to go. Kafka: LogSegment.closeHandlers."""
        self.offset_index.discard()
        self.time_index.discard()
        self.records.close()
