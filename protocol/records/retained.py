"""The batches that compaction writes: some records of a batch, or all of them with another base timestamp.

Records are copied unchanged, unless the base timestamp changes with the first record or with a delete horizon: then
the timestamp delta of each record is written anew. Base offset, last offset, producer, sequence, leader
epoch and codec stay, so that a producer's sequence numbers survive its records.

Kafka: MemoryRecords.buildRetainedRecordsInto.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch, build_empty_batch
from odradek.protocol.records.compression import compress
from odradek.protocol.records.layout import (
    DELETE_HORIZON_MASK,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
)
from odradek.protocol.records.record_walks import KeyedSpan


def rebuild_batch(
    batch: RecordBatch, data: bytes, kept: Sequence[KeyedSpan], delete_horizon_ms: int | None
) -> bytearray:
    """The batch with the records `kept`, at least one, of its uncompressed records `data`.

    Its base timestamp is `delete_horizon_ms`, or without one the timestamp of the first record kept.
    """
    is_append_time = batch.timestamp_type == LOG_APPEND_TIME
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    elif is_append_time:
        base_timestamp = batch.max_timestamp
    else:
        base_timestamp = batch.base_timestamp + kept[0][1]
    if is_append_time:
        max_timestamp = batch.max_timestamp
        body = b"".join(_with_delta(data, span, max_timestamp - base_timestamp) for span in kept)
    else:
        max_timestamp = max(NO_TIMESTAMP, batch.base_timestamp + max([span[1] for span in kept]))
        if shift := batch.base_timestamp - base_timestamp:
            body = b"".join([_with_delta(data, span, span[1] + shift) for span in kept])
        else:
            body = b"".join([data[start:end] for _, _, _, _, start, end in kept])
    codec = batch.compression_type
    return assemble_batch(
        compress(codec, body) if codec else body,
        record_count=len(kept),
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        attributes=batch.attributes & ~DELETE_HORIZON_MASK | (0 if delete_horizon_ms is None else DELETE_HORIZON_MASK),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
    )


def empty_batch(batch: RecordBatch) -> bytearray:
    """The header alone, which keeps the epoch and sequence of its producer."""
    return build_empty_batch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        max_timestamp=batch.max_timestamp,
        attributes=batch.attributes,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
    )


def _with_delta(data: bytes, span: KeyedSpan, timestamp_delta: int) -> bytes:
    """A record with another timestamp delta."""
    *_, position, end = span
    while data[position] >= 0x80:  # the record's length
        position += 1
    position += 2  # the last byte of the length, and the attributes
    while data[position] >= 0x80:  # the timestamp delta
        position += 1
    position += 1
    delta = write_varint(timestamp_delta)
    return b"".join((write_varint(1 + len(delta) + end - position), b"\x00", delta, data[position:end]))
