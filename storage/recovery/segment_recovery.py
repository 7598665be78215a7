"""Recovers one segment: checks the CRC of every batch, and rebuilds the indexes, leader epochs and producer state.

The scan ends at the first batch that is torn or bad; the caller truncates there.

It is one loop over large reads, because a log of small batches has millions of them: a batch costs one unpacking of its
header and one checksum. Only batches with a producer, and those of old formats, become objects.

Apache treats a magic above 2 as a batch of format 2; here the scan ends there.

Kafka: LogSegment.recover.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.protocol.records.batch import RecordBatch, view_batch
from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.errors import CorruptLogError, CorruptRecordError
from odradek.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
)
from odradek.storage.append_info import MAX_RELATIVE_OFFSET
from odradek.storage.offsets import TimestampOffset
from odradek.storage.producers.producer_recovery import complete_transaction, replay_batch
from odradek.storage.segment.file_records import MIN_BATCH_LENGTH, MIN_HEADER, SEQUENTIAL_READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.log.leader_epochs import LeaderEpochs
    from odradek.storage.producers.producer_state_manager import ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment

REPORT_BYTES: Final = 32 * 1024 * 1024
"""The bytes scanned between two progress reports: some hundredths of a second for large batches."""

logger = logging.getLogger(__name__)


class SegmentScan:
    """The scan of one segment, and its progress."""

    __slots__ = ("_last_indexed", "largest", "segment", "valid_bytes")

    def __init__(self, segment: LogSegment) -> None:
        self.segment = segment
        self.valid_bytes = 0
        """The size of the valid batches at the start of the file."""
        self.largest = TimestampOffset(NO_TIMESTAMP, segment.base_offset)
        """The largest timestamp in these batches, with the last offset of its batch."""
        self._last_indexed = 0

    def run(
        self,
        producers: ProducerStateManager,
        leader_epochs: LeaderEpochs,
        on_bytes: Callable[[int], None],
        *,
        ends_at_overflow: bool = False,
    ) -> None:
        """Scan up to the first bad batch, and fill indexes, epochs and producers. Call `begin_rebuild` before.

        `on_bytes` gets the number of bytes scanned since its last call. With `ends_at_overflow`, an offset that cannot
        be indexed ends the scan like a bad batch.
        Raises: SegmentOffsetOverflowError for an offset that cannot be indexed; InvalidOffsetError for decreasing
        offsets; OSError.
        """
        records, unreported = self.segment.records, 0
        read_bytes = SEQUENTIAL_READ_BYTES
        try:
            while records.size - self.valid_bytes > MIN_HEADER:
                chunk = memoryview(records.read(self.valid_bytes, read_bytes))
                scanned = self._scan_chunk(chunk, producers, leader_epochs, ends_at_overflow=ends_at_overflow)
                if not scanned:
                    needed = LOG_OVERHEAD + int.from_bytes(chunk[8:LOG_OVERHEAD], "big")
                    if needed <= len(chunk) or self.valid_bytes + needed > records.size:
                        break
                    read_bytes = needed
                    continue
                unreported += scanned
                if unreported >= REPORT_BYTES:
                    on_bytes(unreported)
                    unreported = 0
                read_bytes = SEQUENTIAL_READ_BYTES
        except (CorruptRecordError, CorruptLogError) as error:
            logger.warning(
                "Found invalid messages in log segment %s at byte offset %d: %s",
                records.path,
                self.valid_bytes,
                error,
            )
        on_bytes(unreported)

    def _scan_chunk(
        self,
        chunk: memoryview,
        producers: ProducerStateManager,
        leader_epochs: LeaderEpochs,
        *,
        ends_at_overflow: bool,
    ) -> int:
        """Scan the whole batches at the start of `chunk`; returns the bytes they take."""
        segment, start = self.segment, self.valid_bytes
        low, high, interval = (
            segment.base_offset,
            segment.base_offset + MAX_RELATIVE_OFFSET,
            segment.index_interval_bytes,
        )
        unpack, last_indexed = BATCH_HEADER.unpack_from, self._last_indexed
        largest_timestamp, latest_epoch = self.largest.timestamp, leader_epochs.latest_epoch
        at, end, next_offset = 0, len(chunk), -1
        batch: AnyBatch
        try:
            while end - at > MIN_HEADER:
                length = int.from_bytes(chunk[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
                size = LOG_OVERHEAD + length
                if size > end - at and length >= MIN_BATCH_LENGTH:
                    break
                if chunk[at + MAGIC_POSITION] == MAGIC_V2 and size >= BATCH_OVERHEAD:
                    base, _, epoch, _, crc, _, delta, _, max_timestamp, producer_id, _, _, _ = unpack(chunk, at)
                    if crc32c(chunk[at + ATTRIBUTES_POSITION : at + size], 0, 0) != crc:
                        RecordBatch(chunk[at : at + size]).ensure_valid()  # raises the exact error
                    last_offset = base + delta
                else:
                    batch = _other_batch(chunk[at:end], length)
                    last_offset, max_timestamp, epoch, producer_id = batch.last_offset, batch.max_timestamp, -1, -1
                if not low <= last_offset <= high:
                    if ends_at_overflow:
                        raise CorruptLogError(f"The offset {last_offset} cannot be in a segment with base {low}")
                    segment.ensure_offset_in_range(last_offset)
                position = start + at
                if max_timestamp > largest_timestamp:
                    largest_timestamp = max_timestamp
                    self.largest = TimestampOffset(max_timestamp, last_offset)
                if position - last_indexed > interval:
                    segment.add_recovered_entry(last_offset, position, self.largest)
                    self._last_indexed = last_indexed = position
                if epoch > latest_epoch:
                    latest_epoch = epoch
                    leader_epochs.assign(epoch, base)
                if producer_id >= 0:
                    batch = RecordBatch(chunk[at : at + size])
                    completed = replay_batch(producers, batch)
                    if completed is not None:
                        complete_transaction(producers, segment, completed)
                if chunk[at + MAGIC_POSITION] == MAGIC_V2:
                    next_offset = last_offset + 1
                at += size
        finally:
            self.valid_bytes = start + at
            if next_offset >= 0:
                producers.map_end_offset = next_offset
        return at


def _other_batch(buffer: memoryview, length: int) -> AnyBatch:
    """The batch of an old format at the start of a buffer. Raises CorruptLogError or CorruptRecordError without one."""
    magic = buffer[MAGIC_POSITION]
    if length < MIN_BATCH_LENGTH or magic > MAGIC_V2:
        raise CorruptLogError(f"Invalid batch of {length} bytes with magic {magic}.")
    batch = view_batch(buffer[: LOG_OVERHEAD + length])
    batch.ensure_valid()
    return batch
