"""The compaction of one log in a worker process: two passes over inactive segments.

    1. build     the offset map from the dirty part: keys only, until the map is full
    2. rewrite   all segments from the first one to the end of the map, group by group, each group into one `.cleaned`
                 segment with all its indexes, fsynced, with the modification time of its last source

Unchanged batches are copied. The output has the index entries of single appends; Apache makes one entry per filled
buffer, so that readers there scan more.

Invariants: only `.cleaned` files are written, renamed or removed; after an error some of them stay, and the cleaner
removes them. The transaction indexes of segments after the cleanable part are read too: the marker of an aborted
transaction may lie there.

Kafka: Cleaner.doClean, Cleaner.cleanSegments, Cleaner.cleanInto, Cleaner.buildOffsetMap.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.errors import CorruptLogError
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from odradek.storage import log_files
from odradek.storage.append_info import AppendedBatch, SegmentOffsetOverflowError
from odradek.storage.cleaning.clean_job import CleanedGroup, CleanJob, CleanResult, CleanStats, SplitNeeded
from odradek.storage.cleaning.compaction import SegmentSizes, group_segments
from odradek.storage.cleaning.offset_map import OffsetMap
from odradek.storage.cleaning.record_filter import KeptBatch, RecordFilter, open_batch
from odradek.storage.cleaning.transaction_filter import TransactionFilter
from odradek.storage.disk.environment import Environment
from odradek.storage.disk.throttle import Throttle
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.log_segments import LogSegments
from odradek.storage.segment.transaction_index import AbortedTxn, CorruptIndexError, TransactionIndex
from odradek.timer.clock import SystemClock, sleep_ms
from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

MIN_IO_BUFFER_BYTES: Final = 4096
"""The minimum size of reads and writes. A larger batch is read in one piece."""

SYNC_EVERY_BYTES: Final = 16 * 1024 * 1024
"""The output is fsynced in portions: gigabytes of dirty pages would block the broker's appends."""


def clean_log(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
    """Compact one log; a function for a WorkerPool. Raises OSError, and CorruptRecordError for a damaged batch."""
    del report  # the result has everything
    clock = SystemClock()
    environment = Environment(clock=clock, timer=SystemTimer(clock), new_uuid_hex=str)
    return LogCleaning(job, environment, sleep_ms).run()


class LogCleaning:
    """One running compaction."""

    def __init__(self, job: CleanJob, environment: Environment, sleep_ms: Callable[[int], None]) -> None:
        self._job = job
        self._environment = environment
        self._throttle = Throttle(job.io_max_bytes_per_second, environment.clock, sleep_ms)
        self._io_buffer_bytes = max(job.io_buffer_bytes, MIN_IO_BUFFER_BYTES)
        # Kafka has no limit. Any batch that the broker accepts, and any batch up to a segment's size, must pass.
        self._max_decompressed_bytes = max(MAX_DECOMPRESSED_BYTES, job.config.segment_bytes)
        self._stats = CleanStats()
        self._unsynced_bytes = 0
        self._map = OffsetMap(job.offset_map_bytes, job.offset_map_load_factor)
        self._segments = LogSegments()
        for base_offset in job.base_offsets:
            self._segments.add(LogSegment.open(job.directory, base_offset, job.config, environment))
        self._txn_indexes = self._open_txn_indexes()

    def run(self) -> CleanResult:
        """Compact the log. Returns the groups to put in place."""
        job, stats, clock = self._job, self._stats, self._environment.clock
        started_ms = clock.monotonic_ms()
        try:
            self._build_offset_map()
            stats.index_ms = clock.monotonic_ms() - started_ms
            next_dirty_offset = self._map.latest_offset + 1
            logger.info(
                "Offset map for %s complete: %d keys up to offset %d",
                job.topic_partition,
                self._map.size,
                next_dirty_offset,
            )
            result = CleanResult(next_dirty_offset=next_dirty_offset, stats=stats)
            self._rewrite(next_dirty_offset, result)
        finally:
            for segment in self._segments:
                segment.discard()
        stats.map_entries, stats.map_utilization = self._map.size, self._map.utilization
        stats.elapsed_ms = clock.monotonic_ms() - started_ms
        return result

    # -- pass 1 ------------------------------------------------------------------------------------

    def _build_offset_map(self) -> None:
        start, end = self._job.first_dirty_offset, self._job.first_uncleanable_offset
        if start >= end:
            return
        transactions = TransactionFilter()
        transactions.add_aborted(self._collect_aborted(start, end))
        dirty = self._segments.range(start, end)
        ends = [segment.base_offset for segment in dirty[1:]] + [end]
        for segment, segment_end in zip(dirty, ends, strict=True):
            if not self._map_segment(segment, transactions):
                return
            self._map.latest_offset = segment_end - 1  # also covers a gap at the end of the segment

    def _map_segment(self, segment: LogSegment, transactions: TransactionFilter) -> bool:
        """Add the keys of a segment to the map; False if the map became full.

        Kafka: Cleaner.buildOffsetMapForSegment.
        """
        start, stats = self._job.first_dirty_offset, self._stats
        for batch in self._read(segment, segment.offset_index.lookup(start).position):
            stats.map_bytes_read += batch.size_in_bytes
            if batch.is_control:
                transactions.on_control_batch(batch)
                stats.map_messages_read += 1
            elif transactions.on_batch(batch):
                stats.map_messages_read += batch.record_count or 0
            else:
                opened = open_batch(batch, self._max_decompressed_bytes)
                if not self._map.put_keys(opened.spans, opened.base_offset, start):
                    return False
                stats.map_messages_read += len(opened.spans)
            if batch.last_offset >= start:
                self._map.latest_offset = batch.last_offset
        return True

    def _read(self, segment: LogSegment, start: int = 0) -> Iterator[AnyBatch]:
        """The batches of an inactive segment, at the configured rate. Raises CorruptLogError for a torn batch."""
        end = start
        for position, batch in segment.records.batches(start, self._io_buffer_bytes):
            end = position + batch.size_in_bytes
            self._throttle.maybe_throttle(batch.size_in_bytes)
            yield batch
        if end != segment.size:
            raise CorruptLogError(f"Log segment may be corrupt: no whole batch at byte {end} of {segment.records.path}")

    # -- pass 2 ------------------------------------------------------------------------------------

    def _rewrite(self, end_offset: int, result: CleanResult) -> None:
        job = self._job
        transactions = TransactionFilter()
        record_filter = RecordFilter(
            self._map,
            transactions,
            job.last_records,
            self._stats,
            now_ms=job.now_ms,
            delete_retention_ms=job.config.delete_retention_ms,
            max_decompressed_bytes=self._max_decompressed_bytes,
        )
        legacy_horizon_ms = self._legacy_delete_horizon_ms()
        sizes = [
            SegmentSizes(s.base_offset, s.size, s.offset_index.size_in_bytes, s.time_index.size_in_bytes)
            for s in self._segments
            if s.base_offset < end_offset
        ]
        config = job.config
        for group in group_segments(
            sizes, config.segment_bytes, config.segment_index_bytes, job.first_uncleanable_offset
        ):
            sources = [self._segments.range(one.base_offset, one.base_offset + 1)[0] for one in group]
            cleaned = self._create_cleaned(sources[0].base_offset)
            transactions.retain = cleaned.txn_index.append
            try:
                for index, source in enumerate(sources):
                    upper = sources[index + 1].base_offset if index + 1 < len(sources) else source.read_next_offset()
                    transactions.add_aborted(self._collect_aborted(source.base_offset, upper))
                    record_filter.retain_legacy_deletes = source.modified_ms > legacy_horizon_ms
                    self._rewrite_segment(source, cleaned, record_filter)
                cleaned.become_inactive()
            except SegmentOffsetOverflowError:
                result.groups.clear()
                result.split = SplitNeeded(source.base_offset)
                return
            finally:
                cleaned.discard()
            self._finish(cleaned, sources[-1])
            result.groups.append(CleanedGroup(tuple(s.base_offset for s in sources), cleaned.base_offset))

    def _legacy_delete_horizon_ms(self) -> int:
        """Tombstones of magic 0 and 1 are removed from segments modified at or before this time (ms)."""
        clean = [segment for segment in self._segments if segment.base_offset < self._job.first_dirty_offset]
        return clean[-1].modified_ms - self._job.config.delete_retention_ms if clean else 0

    def _rewrite_segment(self, source: LogSegment, cleaned: LogSegment, record_filter: RecordFilter) -> None:
        stats = self._stats
        kept: list[KeptBatch] = []
        kept_bytes = 0
        for batch in self._read(source):
            stats.bytes_read += batch.size_in_bytes
            written = record_filter.filter(batch)
            if written is None:
                continue
            kept.append(written)
            kept_bytes += len(written.data)
            if kept_bytes >= self._io_buffer_bytes:
                self._write(cleaned, kept, kept_bytes)
                kept, kept_bytes = [], 0
        self._write(cleaned, kept, kept_bytes)

    def _write(self, cleaned: LogSegment, kept: Sequence[KeptBatch], size: int) -> None:
        if not kept:
            return
        appended = [
            AppendedBatch(batch.last_offset, batch.max_timestamp, batch.last_offset, len(batch.data)) for batch in kept
        ]
        cleaned.append_batches([b"".join([batch.data for batch in kept])], appended)
        self._unsynced_bytes += size
        if self._unsynced_bytes >= SYNC_EVERY_BYTES:
            self._environment.fs.sync(cleaned.records.fileno())
            self._unsynced_bytes = 0
        self._stats.bytes_written += size
        self._stats.messages_written += sum(batch.record_count for batch in kept)
        self._throttle.maybe_throttle(size)

    def _create_cleaned(self, base_offset: int) -> LogSegment:
        job = self._job
        stem = os.path.join(job.directory, log_files.offset_name(base_offset, ""))
        for suffix in log_files.SEGMENT_FILE_SUFFIXES:
            self._environment.fs.unlink(stem + suffix + log_files.CLEANED_FILE_SUFFIX)
        config = dataclasses.replace(job.config, preallocate=False)
        return LogSegment.open(
            job.directory,
            base_offset,
            config,
            self._environment,
            create=True,
            suffix=log_files.CLEANED_FILE_SUFFIX,
        )

    def _finish(self, cleaned: LogSegment, last_source: LogSegment) -> None:
        """Sync the output and set the modification time of its last source, which retention and tombstones of old
        formats use.
        """
        fs = self._environment.fs
        for path in cleaned.paths:
            fs.sync_path(path)
        for path in (cleaned.records.path, cleaned.offset_index.path, cleaned.time_index.path):
            fs.set_modified(path, last_source.modified_ms * 1_000_000)

    # -- aborted transactions ----------------------------------------------------------------------

    def _open_txn_indexes(self) -> list[TransactionIndex]:
        """The transaction indexes of all segments of the log, including those that are not compacted."""
        bases = sorted(
            offset
            for name in os.listdir(self._job.directory)
            if name.endswith(log_files.TXN_INDEX_FILE_SUFFIX) and (offset := log_files.offset_of(name)) is not None
        )
        return [self._open_txn_index(base) for base in bases]

    def _open_txn_index(self, base_offset: int) -> TransactionIndex:
        name = log_files.offset_name(base_offset, log_files.TXN_INDEX_FILE_SUFFIX)
        path = os.path.join(self._job.directory, name)
        return TransactionIndex(path, base_offset, self._environment.fs, self._environment.open_files)

    def _collect_aborted(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap [start_offset, upper_bound)."""
        collected: list[AbortedTxn] = []
        for number, index in enumerate(self._txn_indexes):
            try:
                found, is_complete = index.collect(start_offset, upper_bound)
            except CorruptIndexError:  # the broker may have cut it, with the end of the log: what is left is enough
                index = self._txn_indexes[number] = self._open_txn_index(index.start_offset)
                found, is_complete = index.collect(start_offset, upper_bound)
            collected += found
            if is_complete:
                break
        return collected
