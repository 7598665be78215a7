"""The part of a batch that compaction keeps: nothing, the whole batch, some of its records, or its header only.

A record stays if the map has no later record with its key, and it has a value or its tombstone is kept. The first
compaction that keeps a tombstone, or a marker whose transaction has no data left, writes the time of its removal into
the batch: `delete.retention.ms` from now (the delete horizon, KIP-534). Magic 0 and 1 have no place for it: there, the
modification time of the segment decides. Records after the end of the map stay; records without a key are removed.
The last batch of an active producer stays as a header when its records are removed.

Kafka: Cleaner.cleanInto, MemoryRecords.filterTo, MemoryRecords.RecordFilter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.protocol.records.batch import AnyBatch, LegacyBatch, RecordBatch
from odradek.protocol.records.layout import COMPRESSION_MASK, LOG_APPEND_TIME, MAX_INT64
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_walks import KeyedSpan
from odradek.protocol.records.retained import empty_batch, rebuild_batch
from odradek.storage.cleaning.clean_job import CleanStats, LastRecord
from odradek.storage.cleaning.offset_map import OffsetMap
from odradek.storage.cleaning.transaction_filter import TransactionFilter


class KeptBatch(NamedTuple):
    """The bytes that are written for a batch."""

    data: memoryview | bytearray | bytes
    last_offset: int
    max_timestamp: int
    record_count: int


class OpenedBatch(NamedTuple):
    """A batch with its keys."""

    data: bytes
    """The uncompressed records that the spans point into; empty for magic 0 and 1."""
    spans: list[KeyedSpan]
    base_offset: int
    records: list[Record]
    """The records of magic 0 and 1, in the order of the spans."""


def open_batch(batch: AnyBatch, max_decompressed_bytes: int) -> OpenedBatch:
    """Find the keys in a batch. Raises CorruptRecordError."""
    if isinstance(batch, LegacyBatch):
        records = list(batch.records(max_decompressed_bytes))
        spans: list[KeyedSpan] = [(r.offset, r.timestamp, r.key, r.value is not None, 0, 0) for r in records]
        return OpenedBatch(b"", spans, 0, records)
    if not batch.record_count:
        return OpenedBatch(b"", [], batch.base_offset, [])
    data = batch.record_bytes(max_decompressed_bytes)
    return OpenedBatch(data, batch.keys(data), batch.base_offset, [])


class RecordFilter:
    """Filters the batches of a log, in the order of their offsets."""

    __slots__ = (
        "_delete_retention_ms",
        "_last_records",
        "_map",
        "_max_decompressed_bytes",
        "_now_ms",
        "_stats",
        "_transactions",
        "retain_legacy_deletes",
    )

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: TransactionFilter,
        last_records: Mapping[int, LastRecord],
        stats: CleanStats,
        *,
        now_ms: int,
        delete_retention_ms: int,
        max_decompressed_bytes: int,
    ) -> None:
        self._map = offset_map
        self._transactions = transactions
        self._last_records = last_records
        self._stats = stats
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._max_decompressed_bytes = max_decompressed_bytes
        self.retain_legacy_deletes = True
        """Whether the current segment is too young to remove tombstones of magic 0 and 1."""

    def filter(self, batch: AnyBatch) -> KeptBatch | None:
        """The part of a batch that stays; None for nothing. Raises CorruptRecordError."""
        if isinstance(batch, LegacyBatch):
            return self._filter_legacy(batch)
        can_discard = (
            self._transactions.on_control_batch(batch) if batch.is_control else self._transactions.on_batch(batch)
        )
        horizon_ms = batch.delete_horizon_ms
        is_past_horizon = horizon_ms is not None and horizon_ms <= self._now_ms
        discard = can_discard and (is_past_horizon or not batch.is_control)
        is_last_of_producer = self._is_last_of_producer(batch)
        if discard and not is_last_of_producer:
            return None
        opened = open_batch(batch, self._max_decompressed_bytes)
        self._stats.messages_read += len(opened.spans)
        if discard:
            kept: list[KeyedSpan] = []
        elif batch.is_control:
            kept = opened.spans
        else:
            kept = self._retained(opened, batch.last_offset, keep_deletes=not is_past_horizon)
        if not kept:
            if not is_last_of_producer:
                return None
            return KeptBatch(empty_batch(batch), batch.last_offset, batch.max_timestamp, 0)
        if horizon_ms is None and (can_discard or not all(span[3] for span in kept)):
            # This is a marker, or the batch has a tombstone: discarded data batches do not get here.
            horizon_ms = self._now_ms + self._delete_retention_ms
            if horizon_ms > MAX_INT64:  # a batch has no place for it: what is deleted stays for ever
                horizon_ms = None
        elif len(kept) == len(opened.spans):
            return KeptBatch(batch.buffer, batch.last_offset, batch.max_timestamp, len(kept))
        batch.ensure_valid()  # a new CRC must not hide damage
        rebuilt = rebuild_batch(batch, opened.data, kept, horizon_ms)
        return KeptBatch(rebuilt, batch.last_offset, RecordBatch(memoryview(rebuilt)).max_timestamp, len(kept))

    def _retained(self, opened: OpenedBatch, last_offset: int, *, keep_deletes: bool) -> list[KeyedSpan]:
        """Kafka: Cleaner.shouldRetainRecord."""
        spans, base_offset = opened.spans, opened.base_offset
        latest_offset = self._map.latest_offset
        kept = [
            span
            for span, found in zip(spans, self._map.get_all([span[2] for span in spans]), strict=True)
            if (base_offset + span[0] >= found and (span[3] or keep_deletes)) or base_offset + span[0] > latest_offset
        ]
        if len(kept) < len(spans):
            self._stats.invalid_messages_read += sum(
                1 for span in spans if span[2] is None and base_offset + span[0] <= latest_offset
            )
        return kept

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        """Kafka: Cleaner.isBatchLastRecordOfProducer."""
        last = self._last_records.get(batch.producer_id)
        if last is None or not batch.has_producer_id:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _filter_legacy(self, batch: LegacyBatch) -> KeptBatch | None:
        self._transactions.on_batch(batch)
        opened = open_batch(batch, self._max_decompressed_bytes)
        self._stats.messages_read += len(opened.spans)
        kept = {span[0] for span in self._retained(opened, batch.last_offset, keep_deletes=self.retain_legacy_deletes)}
        if not kept:
            return None
        if len(kept) == len(opened.records) and not _mixes_magics(batch):
            return KeptBatch(batch.buffer, batch.last_offset, batch.max_timestamp, len(kept))
        batch.ensure_valid()
        records = [record for record in opened.records if record.offset in kept]
        rebuilt = build_messages(
            records,
            batch.magic,
            base_offset=records[0].offset,
            compression_type=batch.compression_type,
            timestamp_type=batch.timestamp_type,
            log_append_time=batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else -1,
        )
        written = LegacyBatch(memoryview(rebuilt))
        return KeptBatch(rebuilt, written.last_offset, written.max_timestamp, len(kept))


def _mixes_magics(batch: LegacyBatch) -> bool:
    """Whether a wrapper contains messages of another magic (KAFKA-4298, some old releases): it is rebuilt."""
    if not batch.attributes & COMPRESSION_MASK:
        return False
    return any(message.magic != batch.magic for message in batch.inner_messages())
