"""Writing batches of magic 2.

Kafka: MemoryRecordsBuilder and DefaultRecordBatch.writeHeader.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER,
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    CONTROL_MASK,
    CRC_POSITION,
    CREATE_TIME,
    DELETE_HORIZON_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_V2,
    MAX_INT32,
    MAX_INT64,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
)
from odradek.protocol.records.record import Record, SimpleRecord, append_record


class IllegalBatchError(ValueError):
    """No batch can hold these values together. Kafka: IllegalArgumentException of MemoryRecordsBuilder."""


def build_batch(
    records: Iterable[SimpleRecord | Record],
    *,
    base_offset: int = 0,
    compression_type: int = CompressionType.NONE,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
    sizes: list[int] | None = None,
) -> bytearray:
    """One batch of at least one record. `sizes` gets the bytes that it would have without compression.

    A `SimpleRecord` gets the offset after its predecessor, a `Record` keeps its own. `last_offset` is that of a batch
    whose last records have been removed. With LogAppendTime, `log_append_time` is the batch's timestamp; the records
    keep theirs, as in Kafka.

    Raises: InvalidRecordError if the distance of a timestamp from the first one does not fit into 64 bits. In Apache
    Kafka it overflows when it is written, and again when it is read.
    """
    _check_producer(producer_id, producer_epoch, base_sequence, is_transactional, is_control)
    body = bytearray()
    base_timestamp = delete_horizon_ms
    max_timestamp = NO_TIMESTAMP
    offset = base_offset - 1
    count = 0
    for record in records:
        previous = offset
        offset = record.offset if isinstance(record, Record) else offset + 1
        if offset <= previous or offset - base_offset > MAX_INT32:
            raise ValueError(f"offset {offset} does not follow {previous} in a batch that begins at {base_offset}")
        timestamp = record.timestamp
        if timestamp < NO_TIMESTAMP:
            raise IllegalBatchError(f"Invalid negative timestamp {timestamp}")
        if base_timestamp is None:
            base_timestamp = timestamp
        if timestamp - base_timestamp > MAX_INT64:
            raise InvalidRecordError(f"The timestamps {base_timestamp} and {timestamp} are too far apart for one batch")
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        append_record(body, offset - base_offset, timestamp - base_timestamp, record.key, record.value, record.headers)
        count += 1
    if base_timestamp is None or not count:
        raise ValueError("a batch needs a record; see build_empty_batch")
    if sizes is not None:
        sizes.append(BATCH_OVERHEAD + len(body))
    packed = compress(compression_type, body, level) if compression_type else body
    return assemble_batch(
        packed,
        record_count=count,
        base_offset=base_offset,
        last_offset_delta=(offset if last_offset is None else last_offset) - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=log_append_time if timestamp_type == LOG_APPEND_TIME else max_timestamp,
        attributes=compute_attributes(
            compression_type, timestamp_type, is_transactional, is_control, delete_horizon_ms is not None
        ),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_empty_batch(
    *,
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    partition_leader_epoch: int,
) -> bytearray:
    """The header that compaction keeps of an active producer's last batch. Kafka: DefaultRecordBatch.writeEmptyHeader.

    Of `attributes` the timestamp type, transactional and control bits count: nothing is compressed here, and without
    records there is no delete horizon.
    """
    return assemble_batch(
        b"",
        record_count=0,
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        attributes=attributes & (TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
    )


def assemble_batch(
    payload: bytes | bytearray | memoryview,
    *,
    record_count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """Put a header in front of records that are encoded (and compressed) already."""
    batch = bytearray(BATCH_OVERHEAD)
    BATCH_HEADER.pack_into(
        batch,
        0,
        base_offset,
        BATCH_OVERHEAD + len(payload) - LOG_OVERHEAD,
        partition_leader_epoch,
        MAGIC_V2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    batch += payload
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:], 0, 0)
    batch[CRC_POSITION:ATTRIBUTES_POSITION] = crc.to_bytes(4, "big")
    return batch


def compute_attributes(
    compression_type: int,
    timestamp_type: int,
    is_transactional: bool,
    is_control: bool,
    has_delete_horizon: bool = False,
) -> int:
    """The attributes of a batch."""
    return (
        compression_type & COMPRESSION_MASK
        | (TIMESTAMP_TYPE_MASK if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_MASK if is_transactional else 0)
        | (CONTROL_MASK if is_control else 0)
        | (DELETE_HORIZON_MASK if has_delete_horizon else 0)
    )


def _check_producer(
    producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool, is_control: bool
) -> None:
    if producer_id == NO_PRODUCER_ID:
        if is_transactional:
            raise IllegalBatchError("Cannot write transactional messages without a valid producer ID")
        return
    if producer_epoch == NO_PRODUCER_EPOCH:
        raise IllegalBatchError("Invalid negative producer epoch")
    if base_sequence < 0 and not is_control:
        raise IllegalBatchError("Invalid negative sequence number used")
