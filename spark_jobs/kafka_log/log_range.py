"""The batches in a range of offsets of a replica, whatever its broker does with the files meanwhile.

A file that is open stays readable. When it ends before the range does, or when it was replaced, the directory is listed
again, and the segment that has the next offset is opened. So a range is read once, also if a broker rolls, compacts,
moves or deletes segments between two files; offsets that no file has any more are lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.records.errors import CorruptRecordError
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.errors import KafkaLogError, report_loss
from spark_jobs.kafka_log.log_dirs import Replica, cannot_read
from spark_jobs.kafka_log.log_file import FoundBatch, LogFile, first_offset_of
from spark_jobs.kafka_log.options import ReadOptions
from spark_jobs.kafka_log.segments import Listing, ListingChangedError, Segment, list_segments
from spark_jobs.kafka_log.transactions import AbortedTransactions, TransactionFiles

MAX_LISTINGS_WITHOUT_PROGRESS = 20
"""A broker renames the files of a segment within milliseconds; this many listings in vain are not explained by that."""


class LogRange:
    """Reads [start, end) of a replica."""

    def __init__(self, replica: Replica, start: int, end: int, options: ReadOptions, bad: BadBatches) -> None:
        self._replica = replica
        self._position = start
        self._end = end
        self._options = options
        self._bad = bad

    def batches(self) -> Iterator[tuple[FoundBatch, str, bool]]:
        """Each batch with the name of its file, and whether its transaction was aborted (an ABORT marker: true).

        The first and the last batch may have offsets outside the range. Raises: KafkaLogError, DataLossError.
        """
        attempts = 0
        while self._position < self._end and attempts < MAX_LISTINGS_WITHOUT_PROGRESS:
            before = self._position
            listing = list_segments(self._replica)
            segment = listing.covering(self._position) if listing else None
            if listing is None or segment is None:
                first = listing.first_offset if listing else None
                self._lost(self._end if first is None else min(first, self._end), "are gone")
                continue
            try:
                yield from self._of_segment(listing, segment)
            except (FileNotFoundError, ListingChangedError):
                pass
            except OSError as error:
                raise KafkaLogError(cannot_read(segment.path, error)) from None
            attempts = attempts + 1 if self._position == before else 0
        if self._position < self._end:
            raise KafkaLogError(f"{self._replica.path} changes too fast to be read at offset {self._position}")

    def _of_segment(self, listing: Listing, segment: Segment) -> Iterator[tuple[FoundBatch, str, bool]]:
        aborted: AbortedTransactions | None = None
        name = segment.file_name
        with LogFile(segment, self._bad, self._options.max_batch_bytes) as file:
            for found in file.batches(file.position_of(self._position)):
                batch = found.batch
                if batch.last_offset < self._position:
                    continue
                if first_offset_of(batch) >= self._end:
                    self._position = self._end
                    return
                is_aborted = batch.is_control and _is_abort(batch)
                if batch.is_transactional and not batch.is_control:
                    if aborted is None:
                        files = TransactionFiles(self._replica, listing, self._options)
                        aborted = files.aborted_in(segment, self._position, self._end)
                        if file.is_replaced():
                            raise ListingChangedError
                    is_aborted = aborted.cover(batch)
                yield found, name, is_aborted
                self._position = max(self._position, batch.next_offset)
            self._at_end_of(file, listing)

    def _at_end_of(self, file: LogFile, listing: Listing) -> None:
        """Go on behind a file that has no more batches."""
        if self._position >= self._end:
            return
        segment = file.segment
        next_base = listing.next_base(segment)
        if next_base is None:
            listed_now = list_segments(self._replica)
            next_base = listed_now.next_base(segment) if listed_now else None
        if file.torn_at is not None:
            self._bad.found(segment.path, file.torn_at, "the file ends inside it")
        if next_base is not None:
            self._position = max(self._position, min(next_base, self._end))
        elif not file.is_replaced():
            self._lost(self._end, f"are not in the log, which ends in {segment.path}")

    def _lost(self, until: int, why: str) -> None:
        """Go on at `until`. Raises: DataLossError if lost offsets are an error."""
        report_loss(f"{self._replica.name}: the offsets {self._position} to {until - 1} {why}", self._options)
        self._position = until


def _is_abort(control_batch: AnyBatch) -> bool:
    try:
        return control_record_type(control_batch) is ControlRecordType.ABORT
    except CorruptRecordError:
        return False
