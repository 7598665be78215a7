"""Arrow columns from record batches.

What differs from record to record (key, value, offset, timestamp, size, headers) comes as one list for each column from
`read_columns`. What is the same for a whole batch is one value for each batch, which `take` spreads over the rows.

A row is what a consumer sees of a record. Arrow batches end after so many rows or bytes, which bounds the memory of a
task together with the size of one record batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odradek.protocol.records.batch import AnyBatch, RecordBatch
from odradek.protocol.records.column_walk import RecordColumns, read_columns
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import BATCH_OVERHEAD, LOG_APPEND_TIME, MAX_INT32, NO_SEQUENCE
from odradek.protocol.records.record import HEADER_KEY_ERRORS, Headers
from spark_jobs.kafka_log.columns import column_names

if TYPE_CHECKING:
    from spark_jobs.kafka_log.log_file import FoundBatch
    from spark_jobs.kafka_log.options import ReadOptions

HEADERS_TYPE: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
CODECS: Final = tuple(codec.name.lower() for codec in CompressionType)
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")
_MICROS_PER_MS: Final = 1000
_LATEST_MS: Final = (2**63 - 1) // _MICROS_PER_MS
_FACTS: Final = (
    ("timestampType", pa.int32()),
    ("leaderEpoch", pa.int32()),
    ("producerId", pa.int64()),
    ("producerEpoch", pa.int16()),
    ("compression", pa.string()),
    ("batchSize", pa.int32()),
    ("batchOffset", pa.int64()),
    ("isTransactional", pa.bool_()),
    ("isControl", pa.bool_()),
    ("isAborted", pa.bool_()),
    ("segment", pa.string()),
    ("baseSequence", pa.int64()),
)


def decode(found: FoundBatch, options: ReadOptions) -> Iterator[RecordColumns]:
    """The records of a batch, whatever its format and codec, some rows at a time. Raises: CorruptRecordError."""
    batch = found.batch
    if not isinstance(batch, RecordBatch):
        yield _legacy_columns(batch, options.max_decompressed_bytes)
        return
    if batch.record_count < 0:
        raise InvalidRecordError(f"Found invalid record count {batch.record_count} in magic v{batch.magic} batch")
    data, start, end = found.chunk, found.start + BATCH_OVERHEAD, found.end
    if batch.compression_type and batch.record_count:
        data = batch.record_bytes(options.max_decompressed_bytes)
        start, end = 0, len(data)
    yield from read_columns(
        data,
        start,
        end,
        batch.record_count,
        batch.base_offset,
        batch.base_timestamp,
        batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None,
        options.max_rows,
    )


def _legacy_columns(batch: AnyBatch, max_decompressed_bytes: int) -> RecordColumns:
    """Messages of magic 0 and 1: sizes are those of the messages without compression, with offset and size field."""
    records = list(batch.records(max_decompressed_bytes))
    overhead = 26 + 8 * (batch.magic == 1)
    return RecordColumns(
        offsets=[record.offset for record in records],
        timestamps=[record.timestamp for record in records],
        keys=[record.key for record in records],
        values=[record.value for record in records],
        sizes=[overhead + record.size_in_bytes for record in records],
        headers=None,
    )


def within(columns: RecordColumns, start: int, end: int) -> RecordColumns:
    """The records with offsets in [start, end)."""
    offsets = columns.offsets
    if not offsets or (offsets[0] >= start and offsets[-1] < end):
        return columns
    rows = [row for row, offset in enumerate(offsets) if start <= offset < end]
    offsets, timestamps, keys, values, sizes, headers = columns
    return RecordColumns(
        [offsets[row] for row in rows],
        [timestamps[row] for row in rows],
        [keys[row] for row in rows],
        [values[row] for row in rows],
        [sizes[row] for row in rows],
        None if headers is None else [headers[row] for row in rows],
    )


class ArrowRows:
    """Collects the records of one partition, and makes Arrow batches of them."""

    def __init__(self, topic: str, partition: int, log_dir: str, options: ReadOptions) -> None:
        self._constants = (
            ("topic", pa.scalar(topic)),
            ("partition", pa.scalar(partition, pa.int32())),
            ("logDir", pa.scalar(log_dir)),
        )
        self._include_headers = options.include_headers
        self._max_rows = options.max_rows
        self._max_bytes = options.max_bytes
        self._clear()

    def _clear(self) -> None:
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._sizes: list[int] = []
        self._headers: list[Headers] = []
        self._facts: list[tuple[Any, ...]] = []
        self._fact_of_row: list[bytes] = []
        self._bytes = 0

    def add(
        self, batch: AnyBatch, columns: RecordColumns, segment: str, *, is_aborted: bool
    ) -> Iterator[pa.RecordBatch]:
        """Add the records of a batch; yields what is complete by that."""
        count = len(columns.offsets)
        if not count:
            return
        self._fact_of_row.append(struct.pack("=i", len(self._facts)) * count)
        self._facts.append(
            (
                batch.timestamp_type,
                batch.partition_leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                CODECS[batch.compression_type],
                batch.size_in_bytes,
                columns.offsets[0] if batch.record_count is None else batch.base_offset,
                batch.is_transactional,
                batch.is_control,
                is_aborted,
                segment,
                batch.base_sequence,
            )
        )
        self._offsets += columns.offsets
        self._timestamps += columns.timestamps
        self._keys += columns.keys
        self._values += columns.values
        self._sizes += columns.sizes
        if self._include_headers:
            self._headers += columns.headers or [()] * count
        self._bytes += sum(columns.sizes)
        if len(self._offsets) >= self._max_rows or self._bytes >= self._max_bytes:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was added since the last batch that is complete."""
        if not self._offsets:
            return
        rows = self._record_batch()
        self._clear()
        for start in range(0, rows.num_rows, self._max_rows):
            yield rows.slice(start, self._max_rows)

    def _record_batch(self) -> pa.RecordBatch:
        count = len(self._offsets)
        rows = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(b"".join(self._fact_of_row))])
        arrays = {
            name: pa.array(values, kind).take(rows)
            for (name, kind), values in zip(_FACTS, zip(*self._facts, strict=True), strict=True)
        }
        arrays |= {name: pa.repeat(value, count) for name, value in self._constants}
        offsets = pa.array(self._offsets, pa.int64())
        arrays["key"] = pa.array(self._keys, pa.binary())
        arrays["value"] = pa.array(self._values, pa.binary())
        arrays["offset"] = offsets
        arrays["timestamp"] = _timestamps(self._timestamps)
        arrays["recordSize"] = pa.array(self._sizes, pa.int32())
        arrays["sequence"] = _sequences(arrays.pop("baseSequence"), offsets, arrays["batchOffset"])
        if self._include_headers:
            arrays["headers"] = _headers(self._headers)
        names = column_names(self._include_headers)
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], names=names)


def _timestamps(milliseconds: list[int]) -> pa.Array:
    """Microseconds for Spark; null for a time that does not fit (the year 292,000 and later)."""
    if max(milliseconds) > _LATEST_MS or min(milliseconds) < -_LATEST_MS:
        fitting = [ms if -_LATEST_MS <= ms <= _LATEST_MS else None for ms in milliseconds]
        return pc.multiply(pa.array(fitting, pa.int64()), _MICROS_PER_MS).cast(TIMESTAMP_TYPE)
    return pc.multiply(pa.array(milliseconds, pa.int64()), _MICROS_PER_MS).cast(TIMESTAMP_TYPE)


def _sequences(base_sequences: pa.Array, offsets: pa.Array, base_offsets: pa.Array) -> pa.Array:
    """Base sequence + offset delta, which wraps from 2147483647 to 0; -1 without a sequence."""
    numbers = pc.bit_wise_and(pc.add(base_sequences, pc.subtract(offsets, base_offsets)), MAX_INT32)
    return pc.if_else(pc.less(base_sequences, 0), NO_SEQUENCE, numbers).cast(pa.int32())


def _headers(rows: list[Headers]) -> pa.Array:
    """Null without headers, as in Spark's kafka source. Bytes of a key that are no UTF-8 are replaced, as in Java."""
    return pa.array(
        [
            [
                {"key": key.encode(errors=HEADER_KEY_ERRORS).decode(errors="replace"), "value": value}
                for key, value in headers
            ]
            if headers
            else None
            for headers in rows
        ],
        HEADERS_TYPE,
    )
