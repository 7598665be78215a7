"""The records in a partition's part of a Fetch response, as a consumer sees them.

Control batches are left out. With `read_committed`, so are batches of aborted transactions: the response lists the
transactions that were aborted in its range, by producer and first offset. One of them begins to count where its first
offset is passed, and ends with its abort marker.

Kafka: CompletedFetch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from odradek.protocol.records.batch import AnyBatch, batches
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from odradek.protocol.records.record import Record

if TYPE_CHECKING:
    from odradek.protocol.messages.fetch import AbortedTransaction


class CompletedFetch:
    """Yields the records from `fetch_offset` on."""

    def __init__(
        self,
        data: memoryview,
        fetch_offset: int,
        aborted: Sequence[AbortedTransaction] | None = None,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> None:
        """`aborted`: None for `read_uncommitted`."""
        self.next_offset = fetch_offset
        """Behind the last record that was yielded, or behind what was left out after it."""
        self._data = data
        self._aborted = None if aborted is None else sorted(aborted, key=lambda found: found.first_offset, reverse=True)
        self._aborted_producers: set[int] = set()
        self._check_crcs = check_crcs
        self._max_decompressed_bytes = max_decompressed_bytes

    def __iter__(self) -> Iterator[tuple[Record, int]]:
        """Records with their timestamp type. Raises: CorruptRecordError, InvalidRecordError, DecompressionError."""
        for batch in batches(self._data):
            if self._check_crcs:
                batch.ensure_valid()
            if not self._is_left_out(batch):
                for record in batch.records(self._max_decompressed_bytes):
                    if record.offset >= self.next_offset:
                        self.next_offset = record.offset + 1
                        yield record, batch.timestamp_type
            self.next_offset = max(self.next_offset, batch.next_offset)

    def _is_left_out(self, batch: AnyBatch) -> bool:
        if self._aborted is not None and batch.has_producer_id:
            while self._aborted and self._aborted[-1].first_offset <= batch.last_offset:
                self._aborted_producers.add(self._aborted.pop().producer_id)
            if batch.is_control:
                if control_record_type(batch) == ControlRecordType.ABORT:
                    self._aborted_producers.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in self._aborted_producers:
                return True
        return batch.is_control
