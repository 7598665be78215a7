"""Verifies the batches of one segment in one pass: CRCs, offsets, and the entries of the indexes.

Offsets increase from batch to batch, from the base offset to below the next segment's base offset. A batch with a wrong
CRC is reported and skipped by its length; bytes that are no batch end the pass.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.errors import CorruptLogError, CorruptRecordError
from odradek.protocol.records.layout import MAX_INT32, NO_PARTITION_LEADER_EPOCH
from odradek.storage import log_files
from odradek.storage.offsets import UNKNOWN_OFFSET
from odradek.storage.segment import offset_index, time_index
from odradek.storage.segment.file_records import SEQUENTIAL_READ_BYTES
from odradek.storage.segment.read_only_files import open_offset_index, open_records, open_time_index
from odradek.storage.verification.findings import Finding, Report
from odradek.storage.verification.index_checks import OffsetIndexCheck, TimeIndexCheck
from odradek.storage.verification.transaction_check import TransactionIndexCheck, Transactions

if TYPE_CHECKING:
    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.segment.file_records import FileRecords
    from odradek.storage.verification.epoch_check import EpochCheck


@dataclass(slots=True)
class LogProgress:
    """The state of a log's checks after the segments verified so far."""

    epochs: EpochCheck | None = None
    transactions: Transactions = field(default_factory=Transactions)
    last_offset: int = UNKNOWN_OFFSET
    has_producers: bool = False
    """Any batch has a producer id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFiles:
    """One segment of a log."""

    directory: str
    base_offset: int
    next_base_offset: int | None
    """None for the last segment."""
    is_open: bool
    """A broker may be writing to the segment, or was when it died."""

    def path(self, suffix: str) -> str:
        return os.path.join(self.directory, log_files.offset_name(self.base_offset, suffix))


def verify_segment(files: SegmentFiles, progress: LogProgress, report: Report) -> int:
    """Verify a segment. Returns the offset after its last batch. Raises FileNotFoundError for a deleted segment."""
    with open_records(files.path(log_files.LOG_FILE_SUFFIX)) as records:
        return _SegmentPass(files, records, progress, report).run()


class _SegmentPass:
    def __init__(self, files: SegmentFiles, records: FileRecords, progress: LogProgress, report: Report) -> None:
        self._files = files
        self._progress = progress
        self._report = report
        self._path = records.path
        self._records = records
        self._offsets = self._open_offset_index()
        self._times = self._open_time_index()
        self._aborted = TransactionIndexCheck(
            files.path(log_files.TXN_INDEX_FILE_SUFFIX),
            files.base_offset,
            progress.transactions,
            report,
            is_open=files.is_open,
        )
        self._next_offset = files.base_offset

    def run(self) -> int:
        end = 0
        try:
            for position, batch in self._records.batches():
                end = position + batch.size_in_bytes
                self._see(position, batch)
        except (CorruptLogError, CorruptRecordError) as error:
            if not (self._files.is_open and _is_zero_from(self._records, end)):
                self._found(end, f"no batch can be read from here on: {error.message}")
        else:
            if end < self._records.size and not self._files.is_open:
                self._found(end, f"the last {self._records.size - end} bytes are not a whole batch")
        for check in (self._offsets, self._times):
            if check is not None:
                check.finish()
        self._aborted.finish(self._next_offset)
        return self._next_offset

    def _see(self, position: int, batch: AnyBatch) -> None:
        try:
            batch.ensure_valid()
        except CorruptRecordError as error:
            self._found(position, f"{error.message}, offsets {_offsets(batch)}")
            for check in (self._offsets, self._times):
                if check is not None:
                    check.pass_over(position)
            return
        self._check_offsets(position, batch)
        last_offset = batch.last_offset
        if self._offsets is not None:
            self._offsets.see(position, last_offset)
        if self._times is not None:
            self._times.see(last_offset, batch.max_timestamp)
        if isinstance(batch, RecordBatch):
            epochs = self._progress.epochs
            if epochs is not None and batch.partition_leader_epoch != NO_PARTITION_LEADER_EPOCH:
                epochs.see(self._path, position, batch.partition_leader_epoch, last_offset)
            if batch.has_producer_id:
                self._progress.has_producers = True
                if batch.is_transactional:
                    self._aborted.see(batch, self._path, position)
        self._progress.last_offset = max(self._progress.last_offset, last_offset)
        self._next_offset = max(self._next_offset, last_offset + 1)

    def _check_offsets(self, position: int, batch: AnyBatch) -> None:
        files, last_offset = self._files, batch.last_offset
        first_offset = last_offset
        if isinstance(batch, RecordBatch):  # the first offset of an old compressed message is inside it
            first_offset = batch.base_offset
            if not 0 <= batch.record_count <= batch.last_offset_delta + 1:
                self._found(position, f"{batch.record_count} records cannot have offsets {_offsets(batch)}")
                return
        if first_offset < files.base_offset:
            self._found(position, f"offsets {_offsets(batch)} lie below the segment's base offset")
        elif first_offset <= self._progress.last_offset:
            self._found(position, f"offsets {_offsets(batch)} do not follow offset {self._progress.last_offset}")
        if last_offset - files.base_offset > MAX_INT32:
            self._found(position, f"offsets {_offsets(batch)} are too far from the segment's base for its indexes")
        if files.next_base_offset is not None and last_offset >= files.next_base_offset:
            self._found(position, f"offsets {_offsets(batch)} reach into the segment at {files.next_base_offset}")

    def _open_offset_index(self) -> OffsetIndexCheck | None:
        path = self._files.path(log_files.INDEX_FILE_SUFFIX)
        if not self._is_whole(path, offset_index.ENTRY_SIZE):
            return None
        index = open_offset_index(path, self._files.base_offset)
        return OffsetIndexCheck(index, self._report, is_open=self._files.is_open)

    def _open_time_index(self) -> TimeIndexCheck | None:
        path = self._files.path(log_files.TIME_INDEX_FILE_SUFFIX)
        if not self._is_whole(path, time_index.ENTRY_SIZE):
            return None
        index = open_time_index(path, self._files.base_offset)
        return TimeIndexCheck(index, self._report, is_open=self._files.is_open)

    def _is_whole(self, path: str, entry_size: int) -> bool:
        """Whether the index exists; reports a missing or incomplete one. An empty or open segment may have no index."""
        if not os.path.exists(path):
            if self._records.size and not self._files.is_open:
                self._report(Finding(path, None, "the segment has no such index"))
            return False
        size = os.stat(path).st_size
        if size % entry_size and not self._files.is_open:
            self._report(Finding(path, size - size % entry_size, f"{size} bytes are no multiple of {entry_size}"))
        return True

    def _found(self, position: int, message: str) -> None:
        self._report(Finding(self._path, position, message))


def _offsets(batch: AnyBatch) -> str:
    if isinstance(batch, RecordBatch):
        return f"{batch.base_offset} to {batch.last_offset}"
    return f"up to {batch.last_offset}"


def _is_zero_from(records: FileRecords, position: int) -> bool:
    while chunk := records.read(position, SEQUENTIAL_READ_BYTES):
        if any(chunk):
            return False
        position += len(chunk)
    return True
