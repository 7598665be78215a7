"""A record batch of magic 2: a view over its bytes, and the scan of a buffer into batches.

    base offset i64 | length i32 | leader epoch i32 | magic i8 | CRC-32C u32 | attributes i16 | last offset delta i32
    | base timestamp i64 | max timestamp i64 | producer id i64 | producer epoch i16 | base sequence i32 | count i32
    | records

A batch passes through the broker unopened. What a leader assigns, base offset and leader epoch, are the first 16 bytes
and lie outside the CRC: `PREFIX` packs them anew, to be written in front of the untouched rest. Where the timestamp
type or the max timestamp changes, `header` builds all 61 bytes with a new CRC.

Invariants: the header is read once, when the view is made; a view never changes what it looks at. The last offset is
base offset + last offset delta, whatever the count: compaction keeps the delta when records go. With LogAppendTime,
max timestamp is the time of every record, though the records keep their own. With a delete horizon (KIP-534), base
timestamp is that horizon and the deltas are relative to it.

Kafka: DefaultRecordBatch and ByteBufferLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.compression import decompress
from odradek.protocol.records.errors import CorruptRecordError, InvalidRecordError
from odradek.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_OVERHEAD_V0,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    MAX_DECOMPRESSED_BYTES,
    MAX_INT32,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    SIZE_AND_MAGIC,
    SIZE_MAGIC_AND_ATTRIBUTES,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from odradek.protocol.records.legacy import LegacyBatch
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_walks import KeyedSpan, RecordsSummary, read_keys, read_records, summarize

_unpack_header = BATCH_HEADER.unpack_from
_unpack_size = SIZE_AND_MAGIC.unpack_from
_unpack_kind = SIZE_MAGIC_AND_ATTRIBUTES.unpack_from


class RecordBatch:
    """A view over the bytes of one batch. `buffer` may be just the header; what needs the records then fails."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "length",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, buffer: memoryview) -> None:
        if len(buffer) < BATCH_OVERHEAD:
            raise CorruptRecordError(
                f"Record batch is corrupt (the size {len(buffer)} is smaller than the minimum allowed overhead "
                f"{BATCH_OVERHEAD})"
            )
        self.buffer = buffer
        (
            self.base_offset,
            self.length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _unpack_header(buffer)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(magic={self.magic}, offsets=[{self.base_offset}, {self.last_offset}], "
            f"sequence=[{self.base_sequence}, {self.last_sequence}], producer_id={self.producer_id}, "
            f"is_transactional={self.is_transactional}, is_control={self.is_control}, "
            f"compression_type={self.compression_type}, timestamp_type={self.timestamp_type}, crc={self.crc})"
        )

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, as its length field declares it."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Wraps from 2147483647 to 0; -1 without a sequence."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_INT32

    @property
    def compression_type(self) -> int:
        """The codec's id; 5 to 7 are none."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """0 create time, 1 log append time."""
        return 1 if self.attributes & TIMESTAMP_TYPE_MASK else 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_MASK != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in this batch may go (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    def is_valid(self) -> bool:
        """All bytes are there and the CRC agrees."""
        buffer = self.buffer
        return len(buffer) == self.length + LOG_OVERHEAD and crc32c(buffer[ATTRIBUTES_POSITION:], 0, 0) == self.crc

    def ensure_valid(self) -> None:
        """Raise `CorruptRecordError` unless the bytes are the ones that were sent."""
        if self.is_valid():
            return
        if len(self.buffer) != self.size_in_bytes:
            raise CorruptRecordError(
                f"Record batch is corrupt (it declares {self.size_in_bytes} bytes and has {len(self.buffer)})"
            )
        computed = crc32c(self.buffer[ATTRIBUTES_POSITION:], 0, 0)
        raise CorruptRecordError(f"Record is corrupt (stored crc = {self.crc}, computed crc = {computed})")

    def header(
        self,
        *,
        base_offset: int | None = None,
        partition_leader_epoch: int | None = None,
        timestamp_type: int | None = None,
        max_timestamp: int | None = None,
    ) -> bytes:
        """The 61 header bytes with these fields replaced; the CRC is computed anew if it covers a change."""
        attributes, crc = self.attributes, self.crc
        if timestamp_type is not None:
            attributes = attributes & ~TIMESTAMP_TYPE_MASK | (timestamp_type == LOG_APPEND_TIME) * TIMESTAMP_TYPE_MASK
        if max_timestamp is None:
            max_timestamp = self.max_timestamp
        packed = BATCH_HEADER.pack(
            self.base_offset if base_offset is None else base_offset,
            self.length,
            self.partition_leader_epoch if partition_leader_epoch is None else partition_leader_epoch,
            self.magic,
            crc,
            attributes,
            self.last_offset_delta,
            self.base_timestamp,
            max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )
        if attributes == self.attributes and max_timestamp == self.max_timestamp:
            return packed
        crc = crc32c(self.payload, crc32c(packed[ATTRIBUTES_POSITION:], 0, 0), 0)
        return packed[: MAGIC_POSITION + 1] + crc.to_bytes(4, "big") + packed[ATTRIBUTES_POSITION:]

    @property
    def payload(self) -> memoryview:
        """The records as they are stored, possibly compressed."""
        return self.buffer[BATCH_OVERHEAD:]

    def record_bytes(self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
        """The records one after the other, uncompressed."""
        return decompress(self.attributes & COMPRESSION_MASK, self.payload, max_decompressed_bytes)

    def records(self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
        """The records, with absolute offsets and the timestamps a consumer sees."""
        if self.checked_count() == 0:
            return iter(())
        return read_records(
            self.record_bytes(max_decompressed_bytes),
            self.record_count,
            self.base_offset,
            self.base_timestamp,
            self.base_sequence,
            self.max_timestamp if self.timestamp_type == LOG_APPEND_TIME else None,
        )

    def keys(self, data: bytes) -> list[KeyedSpan]:
        """Keys and positions within `data`, the result of `record_bytes`."""
        return read_keys(data, self.checked_count())

    def summary(
        self, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES, headers_max: int = MAX_INT32
    ) -> RecordsSummary:
        """A summary of the records: all are checked and none is built. Raises: LongHeadersError for more headers."""
        count = self.checked_count()
        data = self.record_bytes(max_decompressed_bytes) if count else b""
        return summarize(data, count, self.base_timestamp, headers_max)

    def checked_count(self) -> int:
        """How many records the header says there are. Raises: InvalidRecordError for a negative number."""
        if self.record_count < 0:
            raise InvalidRecordError(f"Found invalid record count {self.record_count} in magic v{self.magic} batch")
        return self.record_count


AnyBatch: TypeAlias = RecordBatch | LegacyBatch
"""What a log holds. Both have the same attributes."""

__all__ = [
    "AnyBatch",
    "LegacyBatch",
    "RecordBatch",
    "assign_prefix",
    "attributes_of_single_batch",
    "batches",
    "size_of_next_batch",
    "view_batch",
]


def attributes_of_single_batch(buffer: memoryview) -> int:
    """The attributes of the one v2 batch that the buffer consists of; negative if it is anything else."""
    if len(buffer) < BATCH_OVERHEAD:
        return -1
    length, magic, attributes = _unpack_kind(buffer)
    is_single: bool = magic == MAGIC_V2 and LOG_OVERHEAD + length == len(buffer)
    return attributes if is_single else -1


def batches(buffer: memoryview) -> Iterator[AnyBatch]:
    """The batches in a buffer, in order. A partial last one is left out.

    A size below the smallest message (14) or a magic outside 0..2 raises `CorruptRecordError`: nothing behind it can
    be found. CRCs are not looked at.
    """
    position = 0
    end = len(buffer)
    while end - position >= HEADER_SIZE_UP_TO_MAGIC:
        length, magic = _unpack_size(buffer, position)
        if length < LEGACY_OVERHEAD_V0 or not 0 <= magic <= MAGIC_V2:
            size_of_next_batch(buffer[position:])  # raises
        following = position + LOG_OVERHEAD + length
        if following > end:
            return
        view = buffer[position:following]
        yield RecordBatch(view) if magic == MAGIC_V2 else LegacyBatch(view)
        position = following
    if position < end:
        size_of_next_batch(buffer[position:])


def size_of_next_batch(buffer: memoryview) -> int | None:
    """The declared size of the batch at the start of a buffer; None when the buffer is too short to know it."""
    if len(buffer) < LOG_OVERHEAD:
        return None
    length = int.from_bytes(buffer[8:12], "big", signed=True)
    if length < LEGACY_OVERHEAD_V0:
        raise CorruptRecordError(
            f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})"
        )
    if len(buffer) < HEADER_SIZE_UP_TO_MAGIC:
        return None
    if buffer[MAGIC_POSITION] > MAGIC_V2:
        signed = (buffer[MAGIC_POSITION] ^ 0x80) - 0x80
        raise CorruptRecordError(f"Invalid magic found in record: {signed}")
    return length + LOG_OVERHEAD


def view_batch(buffer: memoryview) -> AnyBatch:
    """The view that fits the magic of a batch."""
    return RecordBatch(buffer) if buffer[MAGIC_POSITION] == MAGIC_V2 else LegacyBatch(buffer)


def assign_prefix(buffer: bytearray | memoryview, base_offset: int, partition_leader_epoch: int) -> None:
    """Write base offset and leader epoch into a batch of magic 2, in place. The CRC stays right."""
    buffer[0:8] = base_offset.to_bytes(8, "big", signed=True)
    buffer[12:16] = partition_leader_epoch.to_bytes(4, "big", signed=True)
