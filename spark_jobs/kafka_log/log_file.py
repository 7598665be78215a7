"""One `.log` file, read from the disk: whole batches in chunks, or headers alone.

A descriptor stays on the file that was opened, whatever a broker does with the name. Nothing is mapped into memory: the
broker may cut the file. Sizes in the file are not trusted: a batch is read only if its declared size fits into the file
and below the limit. Nothing is decompressed here.

Kafka: FileRecords, FileLogInputStream.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.records.batch import AnyBatch, RecordBatch, view_batch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import (
    BATCH_OVERHEAD,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_OVERHEAD_V0,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
)
from odradek.storage.log_files import INDEX_FILE_SUFFIX, TIME_INDEX_FILE_SUFFIX
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.index_files import OFFSET_ENTRY, TIME_ENTRY, open_index
from spark_jobs.kafka_log.segments import ListingChangedError, Segment

CHUNK_BYTES: Final = 2 * 1024 * 1024
SCAN_BYTES: Final = 4096
"""What is read at once when only headers are looked at: the default distance of two index entries."""

_FRAME: Final = Struct(">qiib")


class FoundBatch(NamedTuple):
    """A batch in a chunk of a file: its bytes are `chunk[start:end]`."""

    batch: AnyBatch
    chunk: bytes
    start: int
    end: int
    position: int
    """In the file."""


class LogFile:
    """An open segment file. Raises OSError if it cannot be opened."""

    def __init__(self, segment: Segment, bad: BadBatches, max_batch_bytes: int) -> None:
        self.segment = segment
        self._bad = bad
        self._max_batch_bytes = max_batch_bytes
        self._fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        self.torn_at: int | None = None
        """Where a scan found the beginning of a batch whose end is not in the file."""

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def is_replaced(self) -> bool:
        """Whether the name is no longer that of the open file: it was deleted, compacted or moved."""
        opened = os.fstat(self._fd)
        try:
            return self.segment.identity() != (opened.st_dev, opened.st_ino)
        except ListingChangedError:
            return True

    def position_of(self, offset: int) -> int:
        """Where a batch begins at or below `offset`, by the offset index; 0 without an entry that is right."""
        with open_index(self.segment.beside(INDEX_FILE_SUFFIX), OFFSET_ENTRY) as index:
            entry = index.floor(0, offset - self.segment.base_offset) if index else None
        return entry[1] if entry is not None and self._begins_at(entry[1], offset) else 0

    def last_indexed_position(self) -> int:
        """The position of the last entry of the offset index, from where a scan finds the end."""
        with open_index(self.segment.beside(INDEX_FILE_SUFFIX), OFFSET_ENTRY) as index:
            entry = index.last() if index else None
        if entry is None or not self._begins_at(entry[1], self.segment.base_offset + entry[0]):
            return 0
        return entry[1]

    def offset_before_time(self, timestamp_ms: int) -> int:
        """An offset up to which no record is later than `timestamp_ms`, by the time index. Kafka: TimeIndex.lookup."""
        with open_index(self.segment.beside(TIME_INDEX_FILE_SUFFIX), TIME_ENTRY) as index:
            entry = index.floor(0, timestamp_ms) if index else None
        return self.segment.base_offset + (entry[1] if entry else 0)

    def _begins_at(self, position: int, offset: int) -> bool:
        """Whether a batch that begins at or below `offset` is at a position."""
        frame = os.pread(self._fd, HEADER_SIZE_UP_TO_MAGIC, position)
        if len(frame) < HEADER_SIZE_UP_TO_MAGIC:
            return False
        base_offset, length, _, magic = _FRAME.unpack(frame)
        is_batch = length >= LEGACY_OVERHEAD_V0 and 0 <= magic <= MAGIC_V2
        return bool(is_batch and self.segment.base_offset <= base_offset <= offset)

    def batches(self, position: int = 0) -> Iterator[FoundBatch]:
        """The batches from a position on, with their bytes, up to the end of the file or a torn batch (`torn_at`).

        A CRC that is wrong is reported to the `BadBatches`, and the batch is left out; after bytes that are no batch,
        the next entry of the offset index shows where to go on.
        """
        next_offset = self.segment.base_offset
        wanted = CHUNK_BYTES
        while True:
            chunk = os.pread(self._fd, wanted, position)
            view = memoryview(chunk)
            at = size = 0
            reason: str | None = None
            while len(chunk) - at >= HEADER_SIZE_UP_TO_MAGIC:
                base_offset, length, _, magic = _FRAME.unpack_from(chunk, at)
                size = LOG_OVERHEAD + length
                reason = _no_batch(base_offset, length, magic, next_offset)
                if reason or size > len(chunk) - at:
                    break
                try:
                    batch = view_batch(view[at : at + size])
                    batch.ensure_valid()
                except CorruptRecordError as error:
                    self._bad.found(self.segment.path, position + at, error)
                else:
                    next_offset = max(next_offset, batch.next_offset)
                    yield FoundBatch(batch, chunk, at, at + size, position + at)
                at += size
            position += at
            if reason is None:
                if at or (wanted < size <= self._max_batch_bytes and len(chunk) == wanted):
                    wanted = CHUNK_BYTES if at else size
                    continue
                if len(chunk) == wanted and size > self._max_batch_bytes:
                    reason = f"it has {size} bytes, more than maxBatchBytes={self._max_batch_bytes}"
            following = self._after_bad_frame(position, chunk[at:], reason)
            if following is None:
                return
            position, wanted = following, CHUNK_BYTES

    def _after_bad_frame(self, position: int, rest: bytes, reason: str | None) -> int | None:
        """Where to go on when no whole batch is at a position; None at the end, which is noted if it is torn."""
        if not rest.strip(b"\0"):
            return None  # the end, or blocks that are allocated in front of the next batches
        with open_index(self.segment.beside(INDEX_FILE_SUFFIX), OFFSET_ENTRY) as index:
            entry = index.above(1, position) if index else None
        following = entry[1] if entry and self._begins_at(entry[1], self.segment.base_offset + entry[0]) else None
        if following is None and reason is None:
            self.torn_at = position
        else:
            self._bad.found(self.segment.path, position, reason or "its declared size overruns the next batch")
        return following

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, AnyBatch]]:
        """The positions and headers of the batches from a position up to `end` in bytes. A legacy message and a control
        batch come whole. CRCs are not looked at; a torn batch at the end is left out.
        """
        next_offset = self.segment.base_offset
        size_of_file = os.fstat(self._fd).st_size
        limit = size_of_file if end is None else min(end, size_of_file)
        chunk, chunk_start = b"", position
        while position < limit:
            at = position - chunk_start
            if not 0 <= at <= len(chunk) - BATCH_OVERHEAD:
                chunk, chunk_start, at = os.pread(self._fd, SCAN_BYTES, position), position, 0
            reason: str | None = None
            size = 0
            if len(chunk) - at >= HEADER_SIZE_UP_TO_MAGIC:
                base_offset, length, _, magic = _FRAME.unpack_from(chunk, at)
                size = LOG_OVERHEAD + length
                reason = _no_batch(base_offset, length, magic, next_offset)
            if reason or not size or position + size > size_of_file:
                following = self._after_bad_frame(position, chunk[at:], reason)
                if following is None:
                    return
                position = following
                continue
            header = self._header(chunk, at, position, size)
            next_offset = max(next_offset, header.next_offset)
            yield position, header
            position += size

    def _header(self, chunk: bytes, at: int, position: int, size: int) -> AnyBatch:
        if chunk[at + MAGIC_POSITION] == MAGIC_V2 and size >= BATCH_OVERHEAD and len(chunk) - at >= BATCH_OVERHEAD:
            header = RecordBatch(memoryview(chunk)[at : at + BATCH_OVERHEAD])
            if not header.is_control or size > SCAN_BYTES:
                return header
        return self.batch_at(position, min(size, self._max_batch_bytes))

    def batch_at(self, position: int, size: int) -> AnyBatch:
        """The batch at a position. Raises: CorruptRecordError for too few bytes."""
        return view_batch(memoryview(os.pread(self._fd, size, position)))


def last_timestamp(segment: Segment) -> tuple[int, int] | None:
    """The last entry of the time index: the largest timestamp up to an offset; None without one."""
    with open_index(segment.beside(TIME_INDEX_FILE_SUFFIX), TIME_ENTRY) as index:
        entry = index.last() if index else None
    return None if entry is None else (entry[0], segment.base_offset + entry[1])


def _no_batch(base_offset: int, length: int, magic: int, next_offset: int) -> str | None:
    """Why a frame begins no batch of a log that goes on with `next_offset`."""
    if length < LEGACY_OVERHEAD_V0:
        return f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})"
    if not 0 <= magic <= MAGIC_V2:
        return f"Invalid magic found in record: {magic}"
    if base_offset < next_offset:
        return f"its offset {base_offset} does not follow {next_offset - 1}"
    return None


def first_offset_of(batch: AnyBatch) -> int:
    """The base offset; of a compressed legacy message at most that, without opening it."""
    return batch.base_offset if isinstance(batch, RecordBatch) or not batch.compression_type else 0
