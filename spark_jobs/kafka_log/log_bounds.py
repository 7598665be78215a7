"""Where a replica ends, and which offset belongs to a time: by indexes and a few batches, never by all of a log.

Kafka: LogSegment.findOffsetByTimestamp, UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from odradek.protocol.records.errors import CorruptRecordError
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.log_dirs import Replica
from spark_jobs.kafka_log.log_file import LogFile, last_timestamp
from spark_jobs.kafka_log.options import ReadOptions
from spark_jobs.kafka_log.segments import Listing, Segment


class LogBounds:
    """Questions about the segments of one listing."""

    def __init__(self, replica: Replica, listing: Listing, options: ReadOptions) -> None:
        self._flushed_end = replica.flushed_end
        self._listing = listing
        self._bad = BadBatches(permissive=True)  # a bad batch is reported by the task that reads it
        self._options = options

    @property
    def is_damaged(self) -> bool:
        """Whether bytes were seen that are no batch: the log may go on behind them."""
        return self._bad.count > 0

    def end(self) -> int:
        """The offset behind the last batch. Raises OSError."""
        for segment in reversed(self._listing.live):
            with self._open(segment) as file:
                end = None
                for _, header in file.headers(file.last_indexed_position()):
                    end = header.next_offset
                if end is not None:
                    return end
            if segment is not self._listing.live[0]:
                return segment.base_offset
        return self._listing.first_offset or 0

    def offset_for_time(self, timestamp_ms: int, start: int) -> int | None:
        """The first offset from `start` on whose record is not earlier than a time; None if all are. Raises OSError."""
        for segment in self._listing.live:
            next_base = self._listing.next_base(segment)
            if next_base is not None and next_base <= start:
                continue
            if next_base is not None and self._is_earlier(segment, next_base, timestamp_ms):
                continue
            with self._open(segment) as file:
                found = self._in_file(file, timestamp_ms, start)
                if found is not None:
                    return found
        return None

    def _is_earlier(self, segment: Segment, next_base: int, timestamp_ms: int) -> bool:
        """Whether the time index says that a closed segment has only earlier records. Its last entry has the largest
        time, but only below the recovery point is it certain that the broker has written that entry."""
        last = last_timestamp(segment) if next_base <= self._flushed_end else None
        return last is not None and last[0] < timestamp_ms

    def _in_file(self, file: LogFile, timestamp_ms: int, start: int) -> int | None:
        first = file.position_of(max(start, file.offset_before_time(timestamp_ms)))
        for position, header in file.headers(first):
            if header.max_timestamp < timestamp_ms or header.last_offset < start:
                continue
            try:
                batch = file.batch_at(position, header.size_in_bytes)
                for record in batch.records(self._options.max_decompressed_bytes):
                    if record.timestamp >= timestamp_ms and record.offset >= start:
                        return record.offset
            except CorruptRecordError as error:
                self._bad.found(file.segment.path, position, error)
        return None

    def _open(self, segment: Segment) -> LogFile:
        return LogFile(segment, self._bad, self._options.max_batch_bytes)
