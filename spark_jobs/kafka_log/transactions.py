"""Which batches belong to aborted transactions, and where the first open transaction begins.

The `.txnindex` files of a segment and of those behind it have its aborted transactions. They are complete below the
recovery point, and everywhere after a clean stop. Where they may lack entries (the end of a live log, a copy without
indexes), the markers of the log itself decide: a batch is aborted if the next marker of its producer is ABORT. A scan
reads headers only, and ends when each transaction of the segment has ended; where a producer snapshot exists, it says
which transactions are open there, and mostly none is.

Kafka: UnifiedLog.collectAbortedTransactions, TransactionIndex.collectAbortedTxns, ProducerStateManager.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.log_files import INDEX_FILE_SUFFIX, SWAP_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX, snapshot_name
from odradek.storage.producers.producer_state_manager import CorruptSnapshotError, decode_snapshot
from odradek.storage.segment.read_only_files import ReadOnlyFileSystem
from odradek.storage.segment.transaction_index import CorruptIndexError, TransactionIndex
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.log_dirs import ALL_IS_FLUSHED, Replica
from spark_jobs.kafka_log.log_file import LogFile, first_offset_of
from spark_jobs.kafka_log.options import ReadOptions
from spark_jobs.kafka_log.segments import Listing, ListingChangedError, Segment


class AbortedRange(NamedTuple):
    """The offsets of one aborted transaction, its marker included."""

    first_offset: int
    last_offset: int


class AbortedTransactions:
    """Answers whether a batch was aborted."""

    def __init__(self, found: Iterable[tuple[int, AbortedRange]]) -> None:
        ranges: dict[int, set[AbortedRange]] = {}
        for producer_id, aborted in found:
            ranges.setdefault(producer_id, set()).add(aborted)
        self._ranges = {producer_id: sorted(ranges[producer_id]) for producer_id in ranges}

    def cover(self, batch: AnyBatch) -> bool:
        ranges = self._ranges.get(batch.producer_id)
        if not ranges or not batch.is_transactional:
            return False
        index = bisect_right(ranges, batch.base_offset, key=lambda each: each.first_offset) - 1
        return index >= 0 and batch.base_offset <= ranges[index].last_offset


class TransactionScan:
    """Transactions that begin and end in headers that are seen in order."""

    def __init__(self, ongoing: Mapping[int, int] | None = None) -> None:
        self.ongoing = dict(ongoing or {})
        """The first offset of each producer's open transaction, or the first that was seen."""
        self.aborted: list[tuple[int, AbortedRange]] = []

    def see(self, header: AnyBatch, *, begins: bool = True) -> None:
        """The next batch; a control batch has its record. With `begins` False, no transaction begins with it."""
        if not header.is_transactional:
            return
        if not header.is_control:
            if begins:
                self.ongoing.setdefault(header.producer_id, header.base_offset)
            return
        try:
            kind = control_record_type(header)
        except CorruptRecordError:
            return
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            first = self.ongoing.pop(header.producer_id, None)
            if kind is ControlRecordType.ABORT and first is not None:
                self.aborted.append((header.producer_id, AbortedRange(first, header.last_offset)))


@dataclass(slots=True)
class TransactionProgress:
    """How far the transactions of a log are known."""

    offset: int = -1
    """What was seen ends here."""
    scan: TransactionScan = field(default_factory=TransactionScan)


class TransactionFiles:
    """What the files of one listing say of transactions."""

    def __init__(self, replica: Replica, listing: Listing, options: ReadOptions) -> None:
        self._replica = replica
        self._listing = listing
        self._bad = BadBatches(permissive=True)  # a bad batch is reported by the task that reads it
        self._max_batch_bytes = options.max_batch_bytes

    def aborted_in(self, segment: Segment, start: int, end: int | None) -> AbortedTransactions:
        """The aborted transactions with offsets in [start, end) of a segment; `end` None: to its end.

        Raises: ListingChangedError if one of the files that were looked at is another one now; OSError.
        """
        behind = [each for each in self._listing.live if each.base_offset > segment.base_offset]
        upper = behind[0].base_offset if behind else None
        if end is not None:
            upper = end if upper is None else min(end, upper)
        before = [each.identity() for each in (segment, *behind)]
        found = self._aborted(segment, behind, start, upper)
        if before != [each.identity() for each in (segment, *behind)]:
            raise ListingChangedError
        return AbortedTransactions(found)

    def _aborted(
        self, segment: Segment, behind: Sequence[Segment], start: int, upper: int | None
    ) -> list[tuple[int, AbortedRange]]:
        found: list[tuple[int, AbortedRange]] = []
        for index, each in enumerate((segment, *behind)):
            if not self._index_is_complete(each):
                ongoing = None if index == 0 else self._ongoing_at(each.base_offset)
                if ongoing is None:
                    return self._scan((segment, *behind), TransactionScan(), start, upper)
                ongoing = {pid: first for pid, first in ongoing.items() if upper is None or first < upper}
                found += self._scan(behind[index - 1 :], TransactionScan(ongoing), each.base_offset, each.base_offset)
                break
            try:
                entries, is_all = _index(each).collect(start, MAX_INT64 if upper is None else upper)
            except CorruptIndexError:
                return self._scan((segment, *behind), TransactionScan(), start, upper)
            found += [(entry.producer_id, AbortedRange(entry.first_offset, entry.last_offset)) for entry in entries]
            if is_all:
                break
        return found

    def last_stable_offset(self, progress: TransactionProgress, start: int, end: int) -> int:
        """The first offset of a transaction that is open at `end`; `end` if none is. `progress` gets what was seen.

        After an OSError, another call with a newer listing sees the same headers again, to the same result.
        """
        if not start <= progress.offset <= end:
            progress.scan, progress.offset = TransactionScan(), start
        for offset in reversed(self._listing.snapshots):
            if progress.offset < offset <= end and (ongoing := self._ongoing_at(offset)) is not None:
                progress.scan, progress.offset = TransactionScan(ongoing), offset
                break
        if progress.offset < end:
            self._advance(progress.scan, progress.offset, end)
        progress.offset = end
        progress.scan.aborted.clear()
        return min(progress.scan.ongoing.values(), default=end)

    def _advance(self, scan: TransactionScan, start: int, end: int) -> None:
        """Let a scan see the headers of the batches in [start, end)."""
        first = max(0, self._listing.index_of(start))
        for segment in self._listing.live[first:]:
            if segment.base_offset >= end:
                return
            with LogFile(segment, self._bad, self._max_batch_bytes) as file:
                for _, header in file.headers(file.position_of(max(start, segment.base_offset))):
                    if header.last_offset >= end:
                        return
                    if header.last_offset >= start:
                        scan.see(header)

    def _scan(
        self, segments: Iterable[Segment], scan: TransactionScan, start: int, begins_below: int | None
    ) -> list[tuple[int, AbortedRange]]:
        """The transactions that begin below an offset, followed until all have ended, or the log has."""
        for segment in segments:
            is_begun = begins_below is not None and segment.base_offset >= begins_below
            if is_begun and not scan.ongoing:
                break
            with LogFile(segment, self._bad, self._max_batch_bytes) as file:
                for _, header in file.headers(file.position_of(max(start, segment.base_offset))):
                    begins = begins_below is None or first_offset_of(header) < begins_below
                    if not begins and not scan.ongoing:
                        break
                    if header.last_offset >= start:
                        scan.see(header, begins=begins)
        return scan.aborted

    def _index_is_complete(self, segment: Segment) -> bool:
        next_base = self._listing.next_base(segment)
        is_flushed = next_base is not None and next_base <= self._replica.flushed_end
        is_closed = self._replica.flushed_end == ALL_IS_FLUSHED
        return (is_flushed or is_closed) and os.path.exists(segment.beside(INDEX_FILE_SUFFIX))

    def _ongoing_at(self, offset: int) -> dict[int, int] | None:
        """The first offsets of the transactions that a producer snapshot says are open; None without a good one."""
        try:
            with open(os.path.join(self._listing.path, snapshot_name(offset)), "rb") as file:
                entries = decode_snapshot(file.read())
        except (OSError, CorruptSnapshotError):
            return None
        return {
            entry.producer_id: entry.current_txn_first_offset
            for entry in entries
            if entry.current_txn_first_offset >= 0
        }


def _index(segment: Segment) -> TransactionIndex:
    """The index of a segment, checked. A compaction renames it after the `.log` file: for a moment it is `.swap`.

    Raises: CorruptIndexError.
    """
    path = segment.beside(TXN_INDEX_FILE_SUFFIX)
    for name in (path, path + SWAP_FILE_SUFFIX, path):
        index = TransactionIndex(name, segment.base_offset, ReadOnlyFileSystem(), OpenFiles())
        index.sanity_check()
        if not index.is_empty:
            break
    return index
